"""Trainers of images: what weights and states of a known network take decides where it is too much, and nothing is said to fit."""

from __future__ import annotations

from collected import for_each

from diagnose.budget.moments.role_ledgers import ledgers
from diagnose.facts import Fact, FactBook, Value, Witness
from diagnose.plan.pricing import fit
from diagnose.recognition import recognise

FLUX, SDXL = "black-forest-labs/FLUX.1-dev", "stabilityai/stable-diffusion-xl-base-1.0"


@for_each(
    "model, method, card, says",
    [
        (FLUX, "full", "H100", "no"),  # 16 bytes for each of 11.9 billion
        (FLUX, "lora", "Tesla T4", "no"),  # 22.2 GiB of weights alone
        (FLUX, "lora", "H100", "unknown"),
        (SDXL, "full", "RTX 4090", "no"),
        (SDXL, "lora", "RTX 4090", "unknown"),
    ],
)
def test_states_alone_may_be_too_much(model: str, method: str, card: str, says: str) -> None:
    facts: dict[str, Value] = {
        "model.path": model,
        "train.framework": "diffusers",
        "train.finetuning": method,
        "train.precision": "bf16",
        "train.optimizer": "adamw",
        "train.micro_batch_size": 1,
        "parallel.world": 1,
        "hardware.gpu": card,
    }
    book = FactBook([Fact(name, value, "given", Witness("given")) for name, value in facts.items()])
    assert fit.sits(ledgers(book.learn(recognise(book)))[0]) == says
