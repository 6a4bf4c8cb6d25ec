"""What a plan promises to jobs that nobody has seen: figures, values and edits that hold, whatever failed where."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jobs import AXOLOTL, FACTORY, SWIFT, TUNE
from sweep import examples
from workshop import GIB, TRAIN_YAML, cause, edit, job, judged, reprice

from diagnose import check, explain
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.diagnosis import Diagnosis
from diagnose.facts import FactBook, declared
from diagnose.plan import make
from diagnose.plan.choose.advice import job_of
from diagnose.plan.edits.setting_conflicts import contradictions
from diagnose.plan.patch import patching
from diagnose.plan.pricing import fit
from diagnose.plan.remedies.remedy import Remedy

TITAN = (
    '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nlocal_batch_size = {rows}\nseq_len = {length}\n'
    "[parallelism]\ndata_parallel_shard_degree = -1\n"
)
MEGATRON = (
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 "
    "--ffn-hidden-size 14336 --swiglu --group-query-attention --num-query-groups 8 --seq-length {length} "
    "--max-position-embeddings {length} --micro-batch-size {rows} --global-batch-size 128 --bf16 --vocab-size 128256\n"
)
VERL = (
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=256 data.max_prompt_length=1024 "
    "data.max_response_length={length} actor_rollout_ref.model.path=Qwen/Qwen2.5-7B actor_rollout_ref.actor.ppo_mini_batch_size=64 "
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu={rows} actor_rollout_ref.rollout.name=vllm "
    "actor_rollout_ref.rollout.gpu_memory_utilization=0.4 trainer.n_gpus_per_node=8 trainer.nnodes=1\n"
)
LIGHTNING = (
    "import lightning as L, torch\nfrom transformers import AutoModelForCausalLM\nmodel = AutoModelForCausalLM.from_pretrained("
    '"Qwen/Qwen2.5-7B", torch_dtype=torch.bfloat16)\nloader = torch.utils.data.DataLoader(data, batch_size={rows})\n'
    'trainer = L.Trainer(devices=8, strategy="ddp", precision="bf16-mixed", accumulate_grad_batches=2)\ntrainer.fit(model, loader)\n'
)
#: A config, its name, the words that it says full training by.
JOBS = {
    "llamafactory": ("c.yaml", FACTORY, "full"), "axolotl": ("c.yaml", AXOLOTL, ""), "torchtune": ("c.yaml", TUNE, ""),
    "swift": ("run.sh", SWIFT, "full"), "torchtitan": ("t.toml", TITAN, ""), "megatron": ("run.sh", MEGATRON, ""),
    "verl": ("run.sh", VERL, ""), "lightning": ("train.py", LIGHTNING, ""),
}  # fmt: skip
CARDS = {"A100-80GB": 79.15, "RTX 4090": 23.64, "H200": 139.81}
FRAMES = {
    "model_load": "transformers/modeling_utils.py\", line 5, in from_pretrained\n    model = cls._load_pretrained_model(",
    "forward": "transformers/models/llama/modeling_llama.py\", line 5, in forward\n    down_proj = self.down_proj(x)",
    "loss": "torch/nn/functional.py\", line 5, in cross_entropy\n    return torch._C._nn.cross_entropy_loss(input, target)",
    "optimizer_step": "torch/optim/adamw.py\", line 5, in _init_group\n    state[\"exp_avg\"] = torch.zeros_like(p)",
}  # fmt: skip


def log(capacity: float, phase: str) -> str:
    """A card that is full but for 100 MiB, and 300 MiB are asked for."""
    own = capacity - 0.1
    return (
        f'Traceback (most recent call last):\n  File "/x/{FRAMES[phase]}\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate '
        f"300.00 MiB. GPU 0 has a total capacity of {capacity:.2f} GiB of which 102.40 MiB is free. Including non-PyTorch memory, this "
        f"process has {own:.2f} GiB memory in use. Of the allocated memory {own - 0.7:.2f} GiB is allocated by PyTorch, and 102.40 MiB is "
        "reserved by PyTorch but unallocated.\n"
    )


@cache
def failed(framework: str, rows: int, length: int, gpu: str, phase: str) -> Diagnosis:
    name, text, tuned = JOBS[framework]
    source = ConfigSource(name, text.format(rows=rows, length=length, tuned=tuned).encode())
    model = "meta-llama/Llama-3.1-8B" if framework in ("torchtitan", "megatron") else None
    return explain(log(CARDS[gpu], phase), configs=[source], gpu=gpu, gpus=8, model=model)


def read_again(found: Diagnosis, edits: Any) -> FactBook:
    """What the edited files say, to somebody who has not seen the log."""
    after = patching.texts(found.documents, edits)
    texts = {document.name: document.text for document in found.documents} | after
    return FactBook(check([ConfigSource(name, text.encode()) for name, text in texts.items()], gpus=8, frontier=False).facts)


FAILURES = st.tuples(
    st.sampled_from(sorted(JOBS)), st.sampled_from([1, 4, 16]), st.sampled_from([2048, 16384]), st.sampled_from(sorted(CARDS)),
    st.sampled_from(sorted(FRAMES)),
)  # fmt: skip


@given(FAILURES)
@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_edit_is_heeded_and_every_step_takes_something_off(made: tuple[str, int, int, str, str]) -> None:
    found = failed(*made)
    plan, steps = found.outcome.plan, stepped(found)
    for remedy in found.outcome.remedies:
        if remedy.edits and remedy.id not in steps:
            heeded(found, remedy)
    if plan is None or plan.fits not in ("yes", "likely") or len(plan.steps) < 2:
        return
    peaks = [remedy.saves.bytes for remedy in steps.values() if remedy.saves and remedy.knobs and remedy.id in plan.steps[1:]]
    assert all(saved >= 0 for saved in peaks), {remedy.id: remedy.saves for remedy in steps.values()}
    book = FactBook(found.facts)
    together = {knob: value for remedy in steps.values() for knob, value in remedy.knobs}
    assert not set(contradictions(book.changed(together))) - set(contradictions(book))


def stepped(found: Diagnosis) -> dict[str, Remedy]:
    steps = found.outcome.plan.steps if found.outcome.plan else ()
    return {remedy.id: remedy for remedy in found.outcome.remedies if remedy.id in steps}


def heeded(found: Diagnosis, remedy: Remedy) -> None:
    """The edited file is read as the remedy means it, and no edited key is one that does nothing there."""
    again = read_again(found, remedy.edits)
    vain = {fact.value for fact in again.all("config.ignored_key")}
    assert not vain & {edited.renamed or edited.key for edited in remedy.edits if edited.to is not None}, remedy.id
    for knob, value in remedy.knobs:
        entry = declared(knob)
        said = again.value(knob)
        if entry is not None and entry.is_knob and not knob.startswith(("alloc.", "parallel.world")) and said is not None:
            assert said == value, (remedy.id, knob, value, said)


@given(FAILURES)
@settings(max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_surely_fits_leaves_its_margin_at_every_moment(made: tuple[str, int, int, str, str]) -> None:
    found = failed(*made)
    job_ = job_of(FactBook(found.facts), found.ledgers, found.judgement, found.documents)
    if job_.bench.trust != "full" or job_.bench.shares_card:
        return
    for remedy in found.outcome.remedies:
        if remedy.fits == "yes" and remedy.knobs and remedy.id != "bigger_gpu":  # of a card it is said beside the other steps
            assert fit.sits(job_.bench.after(dict(remedy.knobs))) == "yes", remedy.id


@pytest.mark.parametrize("framework", ["torchtitan", "megatron", "swift"])
def test_ranks_that_are_shared_or_added_keep_the_rows_of_a_step(framework: str) -> None:
    """A global batch is said for the ranks that are left; more cards take accumulation away."""
    name, text, tuned = JOBS[framework]
    model = "meta-llama/Llama-3.1-8B" if framework in ("torchtitan", "megatron") else None
    given_: dict[str, Any] = {"gpu": "RTX 4090", "gpus": 8, "model": model, "frontier": False}
    found = check([ConfigSource(name, text.format(rows=1, length=8192, tuned=tuned).encode())], **given_)
    book = FactBook(found.facts)
    job_ = job_of(book, found.ledgers, found.judgement, found.documents)
    steps, knob = book.count("train.gradient_accumulation"), "parallel.context"
    assert steps is not None
    edits = job_.edits({knob: 2, "train.gradient_accumulation": 2 * steps})
    assert edits is not None
    after = patching.texts(found.documents, edits)[name]
    again = FactBook(check([ConfigSource(name, after.encode())], **given_).facts)
    assert again.value("train.rows_per_step") == book.value("train.rows_per_step")


def test_a_job_that_died_as_it_was_loaded_gets_a_plan_for_the_whole_run() -> None:
    """Offload alone gets it past the load, and the step would still need more: what is no help where it failed is a step after it."""
    source = ConfigSource("t.toml", TITAN.format(rows=8, length=8192).encode())
    found = explain(log(23.64, "model_load"), configs=[source], gpu="RTX 4090", gpus=1, model="meta-llama/Llama-3.1-8B").outcome
    assert found.plan is not None and found.plan.fits in ("yes", "likely")
    assert {"fsdp_offload", "lower_micro_batch"} <= set(found.plan.steps)
    assert not set(found.plan.steps) & {each.id for each in found.rejected}


def test_nothing_is_bought_where_something_else_is_enough() -> None:
    """A cause may call for nothing but more cards: what keeps the model and the cards, and is enough, goes before them."""
    facts = job(zero__stage="3")
    found = make(
        facts,
        reprice(facts),
        judged(cause("optimizer_states", "more_gpus")),
        [TRAIN_YAML],
        reprice=reprice,
        edit=edit,
    )
    assert found.plan is not None and found.plan.fits == "yes" and "more_gpus" not in found.plan.steps


def test_a_forward_pass_that_died_half_way_does_not_contradict_its_configuration() -> None:
    """Most of the activations had not been made yet: that less was allocated says nothing against the files."""
    asked = 4 * 16384 * 18944 * 2 / GIB
    text = log(23.64, "forward").replace("300.00 MiB", f"{asked:.2f} GiB")
    source = ConfigSource(
        "c.yaml", (FACTORY.format(tuned="lora", rows=4, length=16384) + "disable_gradient_checkpointing: true\n").encode()
    )
    found = explain(text, configs=[source], gpu="RTX 4090", gpus=1)
    assert FactBook(found.facts).word("ledger.verdict") != "above"
    assert found.outcome.plan is not None and found.outcome.plan.predicted_peak is not None
