"""A question is worth its line: the option that it names answers it, and the report is another one afterwards."""

from __future__ import annotations

from typing import Any

import pytest
from cases import folders, run, settings

from diagnose import explain
from diagnose.facts import declared
from diagnose.plan.remedy import Question
from diagnose.report import Diagnosis

#: An answer of each kind: for a size one that is too small for what is asked about.
ANSWERS = {"count": "4", "size": "8 GiB", "switch": "enabled", "version": "4.40.0", "ratio": "0.5"}
SAID = ("causes", "undecided", "remedies", "rejected", "plan", "budgets", "attributions")


def answered(name: str, question: Question) -> Diagnosis:
    """The case once more with the option that the question names."""
    if question.set == "--model ID":
        return run(name, model="Qwen/Qwen2.5-7B")
    entry = declared(question.fact)
    assert entry is not None and question.set.startswith(f"--set {question.fact}=")
    words = question.set.partition("=")[2].split("|")
    answer = words[-1] if len(words) > 1 else ANSWERS.get(entry.kind, "x")
    return run(name, set={**settings(name).get("set", {}), question.fact: answer})


def said(found: Diagnosis) -> dict[str, Any]:
    report = found.to_dict("en")
    return {part: report[part] for part in SAID}


@pytest.mark.parametrize("name", folders())
def test_answering_a_question_settles_it_and_changes_the_report(name: str) -> None:
    asked = run(name)
    assert len(asked.outcome.questions) <= 3
    before = said(asked)
    for question in asked.outcome.questions:
        assert question.why.en and question.why.zh and question.how.en and question.how.zh
        after = answered(name, question)
        assert question.fact not in [each.fact for each in after.outcome.questions], question.fact
        assert said(after) != before, question.fact


ENGINE = "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"


def test_an_engine_that_serves_is_not_asked_about_training() -> None:
    found = explain(f"INFO 01-01 llm_engine.py: Initializing an LLM engine\n{ENGINE}")
    assert all(not question.fact.startswith(("train.", "lora.", "zero.")) for question in found.outcome.questions)


def test_a_serving_engine_is_priced_as_one_and_not_as_a_training_run() -> None:
    """No optimizer step, no gradients, no question about attention: weights over its tensor parallel degree, as the engine loads them."""
    line = (
        "INFO 11-21 09:14:02 llm_engine.py:174] Initializing an LLM engine (v0.5.4) with config: "
        "model='meta-llama/Llama-3.1-70B-Instruct', dtype=torch.float16, max_seq_len=131072, tensor_parallel_size=2, quantization=None\n"
    )
    found = explain(f"GPU 0: NVIDIA H100 80GB HBM3\n{line}{ENGINE}")
    moments = [moment for ledger in found.ledgers for moment in ledger.moments]
    assert [moment.name for moment in moments] == ["generate"]
    assert [term.group for term in moments[0].terms] == ["weights"]
    assert abs(moments[0].total.bytes / 2**30 - 65.7) < 0.1
    assert not any(question.fact.startswith("model.") for question in found.outcome.questions)


def test_what_a_likely_cause_takes_for_granted_is_asked() -> None:
    """The question that settles the leading cause comes before those about others."""
    log = (
        "RuntimeError: CUDA out of memory. Tried to allocate 4.64 GiB (GPU 0; 31.74 GiB total capacity; 20.00 GiB already allocated; "
        "1.20 GiB free; 29.60 GiB reserved in total by PyTorch)\n"
    )
    found = explain(log)
    assert found.judgement.causes[0].outcome == "likely"
    assert "alloc.expandable_segments" in [question.fact for question in found.outcome.questions]
