"""Secrets leave no answer, and taking them out of the inputs changes no diagnosis."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cases import CORPUS
from collected import for_each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pages import is_no_page
from samples import SAMPLES
from sweep import sample

from diagnose import explain
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.diagnosis import Diagnosis
from diagnose.render.formats import RENDERERS
from diagnose.render.markup.chat_within_limit import Platform, chat
from diagnose.render.parts import redaction
from diagnose.render.parts.redaction import Masker
from diagnose.render.parts.view import View

#: Invented; each as it stands in logs and configs, with the part that may not leave.
SECRETS = {
    "AWS_ACCESS_KEY_ID=AKIAQ3EGINVENTED7XYZ": "AKIAQ3EGINVENTED7XYZ",
    "aws_secret_access_key = wJalrInventedKEYabcdefghijklmnopqrs/0123": "wJalrInventedKEY",
    "AWS_SESSION_TOKEN=FwoGZXIvYXdzInventedSessionToken0123456789": "FwoGZXIvYXdzInvented",
    "HF_TOKEN=hf_InventedInventedInventedInvented00": "hf_Invented",
    "hub_token: hf_InventedTokenOfAHubAccount0123456": "hf_InventedToken",
    "git clone https://ghp_Invented0123456789abcdefghijklmnopqr@github.com/a/b": "ghp_Invented",
    "GITHUB_TOKEN=github_pat_11INVENTED0abcdefghij_0123456789abcdefghij": "github_pat_11INVENTED",
    "CI_JOB_TOKEN=glcbt-64_Invented0123456789": "glcbt-64_Invented",
    "PRIVATE-TOKEN: glpat-Invented0123456789ab": "glpat-Invented",
    "SLACK_BOT_TOKEN=xoxb-1234567890-Invented": "xoxb-1234567890",
    "post to https://hooks.slack.com/services/T0INVENT/B0INVENT/InventedInvented": "InventedInvented",
    "OPENAI_API_KEY=sk-proj-Invented_0123456789abcdefghijklmnop": "sk-proj-Invented",
    "ANTHROPIC_API_KEY: sk-ant-api03-Invented0123456789abcdef-AA": "sk-ant-api03-Invented",
    "wandb: Appending key; WANDB_API_KEY=0123456789inventedabcdef0123456789abcdef": "0123456789invented",
    "wandb login 0123456789abcdef0123456789abcdef0123feed": "0123456789abcdef0123456789abcdef0123feed",
    "View run at https://wandb.ai/invented-alice/dpo/runs/a1b2": "invented-alice",
    "DefaultEndpointsProtocol=https;AccountKey=InventedInventedInventedInvented0123456789ABCDEF==;": "InventedInventedInvented",
    "client_secret=abc8Q~Invented0123456789abcdefghijklmnopqr": "8Q~Invented",
    "//registry/:_authToken=npm_Invented0123456789abcdefghijklmnopqr": "npm_Invented",
    "TWINE_PASSWORD=pypi-AgEIcHlwaS5vcmcInvented0123456789abcdef": "pypi-AgEIcHlwaS5vcmcInvented",
    "GOOGLE_API_KEY=AIzaInvented0123456789abcdefghijklmnopq": "AIzaInvented",
    "token eyJhbGciOiJIUzI1NiJ9.eyJpbnZlbnRlZCI6dHJ1ZX0.Invented0123456789": "eyJpbnZlbnRlZCI6dHJ1ZX0",
    "Authorization: Bearer invented0123456789abcdef": "invented0123456789abcdef",
    "Cookie: session=invented0123456789": "invented0123456789",
    '"private_key": "-----BEGIN PRIVATE KEY-----\\nMIIInventedKeyMaterial\\n-----END PRIVATE KEY-----\\n"': "MIIInventedKeyMaterial",
    "https://alice:InventedPassword@mirror.example.org/simple": "InventedPassword",
    "mail from invented.alice@example.org": "invented.alice",
    "saving to /home/inventedalice/run/out": "inventedalice",
    "inventedbob@gpu-node-07:~/run$ torchrun train.py": "inventedbob",
    "MASTER_ADDR=gpu-node-17.invented.internal": "gpu-node-17.invented",
    "rdzv_endpoint=10.17.0.99:29400": "10.17.0.99",
    "listening on [2001:db8::17:1]:29500": "2001:db8::17:1",
    "dashscope key LTAIInvented0123456789": "LTAIInvented",
    "DATABRICKS_TOKEN=dapi0123456789abcdef0123456789abcdef": "dapi0123456789abcdef",
}

PLATFORMS: tuple[Platform, ...] = ("github", "slack", "discord", "feishu")
CASES = sorted(case.name for case in CORPUS.iterdir() if (case / "error.log").is_file())


@for_each("line", SECRETS)
def test_no_invented_secret_is_left(line: str) -> None:
    assert SECRETS[line] not in Masker()(f"[rank0]: {line}")


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(SECRETS)), st.text(alphabet="abc :=,'\"(){}[]\n\t", max_size=12), st.text(alphabet=" \n,;)\"'", max_size=4))
def test_whatever_stands_round_a_secret(line: str, before: str, after: str) -> None:
    """Quotes, brackets, blanks and line ends round it hide none of it."""
    assert SECRETS[line] not in Masker()(f"{before} {line}{after}")


@cache
def full_of_secrets() -> Diagnosis:
    """All secrets in the log and in the config."""
    lines = "\n".join(SECRETS)
    message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.64 GiB. GPU 3 has a total capacity of 31.74 GiB."
    config = "model_name_or_path: meta-llama/Llama-2-7b-hf  # " + "\n# ".join(SECRETS) + "\nstage: sft\ncutoff_len: 4096\n"
    return explain(
        f"{lines}\n{message} {' '.join(list(SECRETS)[:6])}\n{lines}",
        configs=[ConfigSource("/home/inventedalice/train.yaml", config.encode())],
        gpus=1,
    )


@for_each("form", RENDERERS)
def test_no_format_lets_one_out(form: str) -> None:
    """In no answer that was masked, its embedded excerpts and its patch included."""
    said = RENDERERS[form](redaction.mask_diagnosis(full_of_secrets()), "en", View(verbose=True, budget=True, rules=True))
    assert not [secret for secret in SECRETS.values() if secret in said]


@for_each("platform", PLATFORMS)
def test_no_message_lets_one_out(platform: Platform) -> None:
    """Masked on the way into a chat, the patch beside it too."""
    message = chat(full_of_secrets(), platform)
    assert not [secret for secret in SECRETS.values() if secret in message.text + message.patch]


@pytest.mark.parametrize("name", sample([*filter(is_no_page, CASES)], 24))
def test_masking_the_inputs_changes_no_diagnosis(name: str) -> None:
    """Explaining a masked log with masked configs says the same: verdict, causes, remedies, plan. Pages are left out: below so many lines
    of secrets a script in one is read only once they are masked."""
    folder = CORPUS / name
    configs = [
        path
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name not in ("error.log", "expected.yaml") and path.suffix != ".md"
    ]
    mask = Masker()
    log = "\n".join(SECRETS) + "\n" + read(folder / "error.log")
    plain = explain(unmasked(log), configs=[ConfigSource(path.name, path.read_bytes()) for path in configs])
    hidden = explain(masked(mask, log), configs=[ConfigSource(path.name, masked(mask, read(path))) for path in configs])
    assert essence(hidden) == essence(plain)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(SAMPLES)))
def test_masking_a_diagnosis_keeps_its_conclusions(name: str) -> None:
    sample = SAMPLES[name]()
    assert essence(redaction.mask_diagnosis(sample)) == essence(sample)
    assert redaction.mask_diagnosis(redaction.mask_diagnosis(sample)) == redaction.mask_diagnosis(sample)


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="surrogateescape")


def unmasked(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def masked(mask: Masker, text: str) -> bytes:
    return unmasked(mask(text))


def essence(found: Diagnosis) -> Any:
    """What a reader acts on."""
    plan = found.outcome.plan
    return (
        (found.verdict.status, found.verdict.family, found.verdict.phase),
        [cause.cause for cause in found.judgement.causes],
        [(remedy.id, remedy.fits, remedy.saves) for remedy in found.outcome.remedies],
        plan and (plan.steps, [(edit.key, edit.to) for edit in plan.edits], plan.fits),
        [each.id for each in found.outcome.rejected],
    )
