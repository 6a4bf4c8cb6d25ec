"""SARIF for code scanning: the parts that its schema and its readers insist on, at the line of the user's config."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from collected import for_each
from hypothesis import given
from hypothesis import strategies as st
from samples import SAMPLES

from diagnose.diagnosis import Diagnosis
from diagnose.facts import Notice, Witness
from diagnose.phrases import Lang, same
from diagnose.render.data.sarif import FINGERPRINT
from diagnose.render.formats import RENDERERS
from diagnose.render.parts.view import View

LANGS: tuple[Lang, Lang] = ("en", "zh")

#: What sarif-schema-2.1.0.json asks of the parts that are used here, and what GitHub's code scanning asks beyond it.
TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
ARTIFACT = {
    "type": "object",
    "required": ["uri"],
    "properties": {"uri": {"type": "string", "pattern": r"^[^\s\\\"<>^`{|}]+$"}, "uriBaseId": {"type": "string"}},
    "additionalProperties": False,
}
REGION = {
    "type": "object",
    "required": ["startLine"],
    "properties": {
        "startLine": {"type": "integer", "minimum": 1},
        "startColumn": {"type": "integer", "minimum": 1},
        "endColumn": {"type": "integer", "minimum": 1},
        "snippet": TEXT,
    },
    "additionalProperties": False,
}
LOCATION = {
    "type": "object",
    "required": ["physicalLocation"],
    "properties": {
        "id": {"type": "integer", "minimum": -1},
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation"],
            "properties": {"artifactLocation": ARTIFACT, "region": REGION},
        },
    },
    "additionalProperties": False,
}
FIX = {
    "type": "object",
    "required": ["artifactChanges"],
    "properties": {
        "artifactChanges": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["artifactLocation", "replacements"],
                "properties": {
                    "artifactLocation": ARTIFACT,
                    "replacements": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["deletedRegion"]}},
                },
            },
        }
    },
}
RESULT = {
    "type": "object",
    "required": ["ruleId", "ruleIndex", "message", "locations", "level", "partialFingerprints"],
    "properties": {
        "level": {"enum": ["none", "note", "warning", "error"]},
        "message": TEXT,
        "locations": {"type": "array", "items": LOCATION, "maxItems": 1},
        "relatedLocations": {"type": "array", "items": LOCATION, "uniqueItems": True},
        "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
        "fixes": {"type": "array", "items": FIX},
        "ruleId": {"type": "string"},
        "ruleIndex": {"type": "integer", "minimum": 0},
    },
    "additionalProperties": False,
}
RULE = {
    "type": "object",
    "required": ["id", "shortDescription", "fullDescription"],
    "properties": {"shortDescription": TEXT, "fullDescription": TEXT},
}
DRIVER = {"type": "object", "required": ["name", "rules"], "properties": {"rules": {"type": "array", "items": RULE, "uniqueItems": True}}}
SCHEMA = {
    "type": "object",
    "required": ["version", "runs", "$schema"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1,
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "properties": {
                    "tool": {"type": "object", "required": ["driver"], "properties": {"driver": DRIVER}},
                    "results": {"type": "array", "items": RESULT},
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "language": {"type": "string", "pattern": "^[a-zA-Z]{2}(-[a-zA-Z]{2})?$"},
                },
            },
        },
    },
}


def sarif(of: Diagnosis, lang: Lang = "en") -> Any:
    import jsonschema

    log = json.loads(RENDERERS["sarif"](of, lang, View()))
    jsonschema.validate(log, SCHEMA)
    for result in log["runs"][0]["results"]:
        assert log["runs"][0]["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    return log["runs"][0]


@for_each("lang", LANGS)
@for_each("name", SAMPLES)
def test_it_is_what_readers_of_sarif_expect(name: str, lang: Lang) -> None:
    run = sarif(SAMPLES[name](), lang)
    assert run["tool"]["driver"]["name"] == "oomdoctor"


def test_a_failure_stands_at_the_key_that_caused_it() -> None:
    first = sarif(SAMPLES["dpo_logits"]())["results"][0]
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "qwen2vl_dpo.yaml" and place["region"]["startLine"] == 19
    assert first["level"] == "error" and first["ruleId"] == "oom/logits"
    assert {each["physicalLocation"]["artifactLocation"]["uri"] for each in first["relatedLocations"]} == {"error.log", "qwen2vl_dpo.yaml"}


def test_what_is_only_also_true_is_no_result() -> None:
    assert [each["ruleId"] for each in sarif(SAMPLES["dpo_logits"]())["results"]] == ["oom/logits"]


def test_no_failure_of_memory_is_no_result() -> None:
    assert sarif(SAMPLES["lookalike"]())["results"] == []
    assert sarif(SAMPLES["before_a_run"]())["results"] == []


def test_a_fingerprint_survives_lines_above_and_tells_causes_apart() -> None:
    sample = SAMPLES["dpo_logits"]()
    cause = sample.judgement.causes[0]
    moved = cause._replace(evidence=tuple(each._replace(line=each.line + 7) for each in cause.evidence))
    other = cause._replace(cause="activations")
    prints = [
        sarif(replace(sample, judgement=sample.judgement._replace(causes=(each,))))["results"][0]["partialFingerprints"][FINGERPRINT]
        for each in (cause, moved, other)
    ]
    assert prints[0] == prints[1] != prints[2]


def test_a_warning_about_a_config_is_a_result_of_its_own() -> None:
    notice = Notice("warning", "config.unknown_key", same("no key cutof_len"), Witness("a b/train.yaml", 19, 1, key="cutof_len"))
    run = sarif(replace(SAMPLES["before_a_run"](), notices=(notice,)))
    (result,) = run["results"]
    assert result["ruleId"] == "config/unknown-key" and result["level"] == "warning"
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20b/train.yaml"


def test_a_plan_that_replaces_values_is_a_fix() -> None:
    """Only where all of it can be written as replacements: half a plan is no fix."""
    sample = SAMPLES["dpo_logits"]()
    assert "fixes" not in sarif(sample)["results"][0]  # a variable is part of it
    assert sample.outcome.plan is not None
    plan = replace(sample.outcome.plan, env=())
    (fix,) = sarif(replace(sample, outcome=sample.outcome._replace(plan=plan)))["results"][0]["fixes"]
    (change,) = fix["artifactChanges"]
    assert change["replacements"] == [
        {"deletedRegion": {"startLine": 1, "startColumn": 13, "endLine": 1, "endColumn": 17}, "insertedContent": {"text": "1536"}}
    ]


@given(st.text(max_size=60), st.text(min_size=1, max_size=40))
def test_any_text_and_any_name_make_valid_sarif(text: str, name: str) -> None:
    sample = SAMPLES["host_kill"]()
    cause = [each._replace(title=same(f"x{text}"), evidence=(Witness(name, 1, 1, text),)) for each in sample.judgement.causes]
    run = sarif(replace(sample, judgement=sample.judgement._replace(causes=tuple(cause))))
    assert all(not re.search(r"[\x00-\x08\x1b]", json.dumps(each, ensure_ascii=False)) for each in run["results"])
