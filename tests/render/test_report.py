"""The report: the contract's keys in the contract's order, one form for sizes and witnesses, the typed form equal to it."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from typing import Any

import jsonschema
import pytest
from collected import for_each
from samples import SAMPLES, dpo_logits

from diagnose.budget.model.ledger import Ledger, Moment, Term
from diagnose.catalogue import Model
from diagnose.diagnosis import Diagnosis, Verdict
from diagnose.facts import Fact, Witness
from diagnose.phrases import Lang, same
from diagnose.render.data.pydantic_report import Report, schema
from diagnose.units import Size

NOTHING = Verdict("none", None, None, same("nothing"), None)

#: The keys of the contract, in its order; keys may be added behind them.
CONTRACT = {
    "": "schema tool inputs verdict events facts attributions budgets causes undecided remedies rejected plan questions notices",
    "tool": "name version",
    "inputs": "name kind bytes lines encoding notes",
    "verdict": "status family phase headline event",
    "events": "family exception fatal attempt rank local_rank ranks host pid gpu step phase requested capacity free allowed process_in_use "
    "allocated reserved_unallocated reserved_total private_pools mps_allocated other_allocations max_allowed current_active "
    "other_processes frames consequence_of count members evidence",
    "facts": "name value unit witness",
    "attributions": "event tensor formula numbers bytes block_bytes exact coincidence agrees witness",
    "budgets": "role gpus capacity usable moments peak_moment observed unexplained host",
    "causes": "id rule certainty also_true accounts_for title explanation evidence url",
    "remedies": "id rule title why saves fits price edits env command references url",
    "rejected": "id rule reason",
    "plan": "steps edits env predicted_peak margin fits ladder",
    "questions": "fact why how set",
}


@for_each("part", CONTRACT)
def test_the_keys_are_the_contracts_in_its_order(part: str) -> None:
    """Scripts read these names; a new key may only stand behind them."""
    report: Any = dpo_logits().to_dict()
    value = report[part] if part else report
    first = value[0] if isinstance(value, list) else value
    wanted = CONTRACT[part].split()
    assert list(first)[: len(wanted)] == wanted


def test_inner_parts_have_the_contracts_keys() -> None:
    report: Any = dpo_logits().to_dict()
    moment = report["budgets"][0]["moments"][0]
    assert list(moment) == ["name", "total", "terms"]
    assert list(moment["terms"][0])[:6] == ["name", "size", "share", "symbols", "numbers", "source"]
    assert list(report["remedies"][0]["price"]) == ["results", "speed", "effort", "host_memory"]
    assert report["plan"]["edits"] == [{"target": "qwen2vl_dpo.yaml", "key": "cutoff_len", "from": "4096", "to": "1536"}]
    assert list(report["plan"]["ladder"][0]) == ["knob", "from", "to", "predicted_peak"]
    assert report["events"][0]["frames"] == [{"file": "torch/nn/functional.py", "line": 3104, "function": "cross_entropy"}]
    unknown: Any = SAMPLES["ppo_states"]().to_dict()["undecided"]
    assert unknown == [{"rule": "leak", "fact": "log.step", "how": "give the log from the start of training"}]


def test_a_printed_size_keeps_its_text_and_a_derived_one_has_none() -> None:
    report: Any = dpo_logits().to_dict()
    assert report["events"][0]["requested"]["text"] == "4.64 GiB"
    assert list(report["remedies"][0]["saves"]) == ["bytes", "low", "high"]


def test_witnesses_have_three_forms() -> None:
    """A line, a key, or neither: tools tell them apart by their keys."""
    facts: Any = {fact["name"]: fact for fact in dpo_logits().to_dict()["facts"]}  # type: ignore[index,union-attr,call-overload]
    assert list(facts["log.requested"]["witness"]) == ["source", "line", "column", "text"]
    assert facts["train.max_seq_len"]["witness"] == {"source": "qwen2vl_dpo.yaml", "line": 19, "key": "cutoff_len"}
    assert facts["alloc.expandable_segments"]["witness"] == {"source": "default", "text": "torch 2.5.1"}


def test_a_witness_is_cut_at_five_hundred_characters() -> None:
    fact = Fact("log.frame", "x", "log", Witness("a.log", 1, 1, "y" * 9000))
    report: Any = Diagnosis(NOTHING, facts=(fact,)).to_dict()
    assert len(report["facts"][0]["witness"]["text"]) == 500


def test_values_are_what_json_can_hold() -> None:
    """A switch is true or false, a release its text, a shape its model's id, what is not a number nothing."""
    shape = Model("Qwen/Qwen2-7B", "qwen2", 1, 1, 1, 1, 1, 1, 1, False, 1)
    facts = (
        Fact("model.shape", shape, "catalogue", Witness("catalogue")),
        Fact("lora.dropout", float("inf"), "given", Witness("given")),
    )
    report: Any = Diagnosis(NOTHING, facts=facts).to_dict()
    assert [fact["value"] for fact in report["facts"]] == ["Qwen/Qwen2-7B", None]
    values: Any = {fact["name"]: fact["value"] for fact in dpo_logits().to_dict()["facts"]}  # type: ignore[index,union-attr,call-overload]
    assert values["alloc.expandable_segments"] is False
    assert values["version.torch"] == "2.5.1"
    assert values["data.longest_sample"] is None


@for_each("lang", ["en", "zh"])
@for_each("name", SAMPLES)
def test_the_typed_report_equals_the_dictionary_and_the_schema_admits_it(name: str, lang: Lang) -> None:
    """The model and the schema are made of the declaration that the dictionary is made of; none of the three may drift."""
    report = SAMPLES[name]().to_dict(lang)
    assert Report.model_validate(report).to_dict() == report
    assert Report.of(SAMPLES[name](), lang).to_dict() == report
    jsonschema.Draft202012Validator(json.loads(schema())).validate(json.loads(json.dumps(report)))


def test_a_typed_report_can_be_sent_to_another_process() -> None:
    """The models are made when asked for; pickle still finds each of them by its name."""
    report = Report.of(dpo_logits())
    assert pickle.loads(pickle.dumps(report)) == report


def test_the_schema_refuses_what_is_no_report() -> None:
    report: Any = dpo_logits().to_dict()
    report["verdict"]["status"] = "perhaps"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(json.loads(schema())).validate(report)


@for_each("name, status", [("dpo_logits", 0), ("host_kill", 0), ("lookalike", 1), ("before_a_run", 0)])
def test_the_exit_status_is_the_contracts(name: str, status: int) -> None:
    assert SAMPLES[name]().exit_status == status


@for_each("need, complete, status", [(10, True, 0), (23, True, 1), (99, True, 1), (10, False, 4), (99, False, 1)])
def test_check_says_whether_the_job_fits(need: int, complete: bool, status: int) -> None:
    """0 fits, 1 does not, 4 cannot tell: what is missing from a ledger can only add to it."""
    term = Term("weights", same("weights"), "weights", Size.exactly(need * 2**30), "x", "y")
    ledger = Ledger("train", 1, (Moment("init", (term,)),), usable=Size.exactly(24 * 2**30), complete=complete)
    assert Diagnosis(NOTHING, ledgers=(ledger,), asked="check").exit_status == status


def test_check_without_a_ledger_cannot_tell() -> None:
    assert Diagnosis(NOTHING, asked="check").exit_status == 4


def test_markdown_is_masked_unless_told_otherwise() -> None:
    """What is pasted into a chat leaves the machine."""
    assert "alice@" not in SAMPLES["lookalike"]().to_markdown()
    assert "alice@" in SAMPLES["lookalike"]().to_markdown(redact=False).replace("\u200b", "")


def test_importing_the_package_imports_nothing_heavy() -> None:
    heavy = {"rich", "typer", "pydantic", "lark", "yaml", "jinja2"}
    code = (
        "import sys, diagnose, diagnose.diagnosis, diagnose.render.formats, diagnose.cluster.report.report_files;"
        f" print(*sorted({heavy} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == ""


def test_the_public_names_are_functions_whatever_was_imported_first() -> None:
    """They are imported on first use, which the import of a module below must not disturb."""
    code = "import diagnose.pipeline; from diagnose import check, explain\nprint(callable(explain), callable(check), diagnose.__version__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("True True ")
