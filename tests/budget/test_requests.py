"""Which tensor a failed request was, in reports that were judged before they were read by the program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from collected import for_each

from diagnose.budget.model.ledger import Attribution
from diagnose.pipeline import explain

REQUESTS = yaml.load((Path(__file__).parent / "requests.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)


def first(case: dict[str, Any]) -> Attribution | None:
    diagnosis = explain(case["text"], **case.get("options", {}))
    return next((made for made in diagnosis.attributions if made.event == diagnosis.verdict.event), None)


@for_each("case", REQUESTS)
def test_the_tensor_of_a_reported_request(case: dict[str, Any]) -> None:
    """Named as judged, with its bytes where they follow from the report; never exact where it is another. `missed`: not named yet."""
    made = first(case)
    right = made is not None and made.group in case["group"]
    sized = made is not None and (made.by_frame or made.solved or made.bytes == case.get("bytes", made.bytes))
    assert made is None or not made.exact or (right and sized)
    assert bool(made is not None and made.named and right and sized) is not case.get("missed", False)


def test_few_are_missed() -> None:
    assert sum("missed" in case for case in REQUESTS) <= len(REQUESTS) * 0.15


def test_a_tensor_of_one_moment_tells_the_phase() -> None:
    """The initializer of a variable runs while the model is made, which the message alone does not say."""
    text = next(case["text"] for case in REQUESTS if case["report"] == "frcnn110")
    assert ("log.phase", "model_load") in [(fact.name, fact.value) for fact in explain(text).facts]


def test_a_model_that_a_page_only_names_has_its_tensors_tried_and_no_budget_counted() -> None:
    """A page that does not tell how it trains: 8192 x 28672 x 2 bytes are 448.00 MiB."""
    text = next(case["text"] for case in REQUESTS if case["report"] == "llama918")
    diagnosis = explain(f"{text}\nI train it.\n")
    assert diagnosis.attributions[0].bytes == 8192 * 28672 * 2
    assert not any(fact.name.startswith(("ledger.", "model.layers")) for fact in diagnosis.facts)


def test_what_evaluation_keeps_does_not_shrink_with_the_rows_of_a_batch() -> None:
    """All batches are kept: fewer rows in each leave as much. 8,192 x 256000 x 4 bytes are 7.81 GiB."""
    trace = (
        'File "/x/transformers/trainer_pt_utils.py", line 123, in nested_concat\n    return torch_pad_and_concatenate(tensors, new_tensors)'
    )
    message = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 7.81 GiB. GPU 0 has a total capacity of 23.64 GiB"
    text = f"Traceback (most recent call last):\n  {trace}\n{message} of which 1.02 GiB is free.\n"
    kept = explain(text, model="google/gemma-2-9b").attributions[0]
    assert kept.key == "ledger.t_eval_logits" and set(kept.lowered_by) == {"eval.accumulation_steps", "train.max_seq_len"}
