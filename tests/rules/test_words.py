"""The words of the tables stay in the tables: what is known of a family, a cause or a remedy is an attribute, never a name in the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from checkout import ROOT

from diagnose import rule_files

PACKAGE = ROOT / "diagnose"

VOCABULARY = rule_files.table("vocabulary")
REMEDIES = {word for group in VOCABULARY["remedy"].values() for word in group}
#: Words that name something else as well, which the code may speak of: groups of a ledger, phases and moments of a run, verdicts, values
#: of settings (`bf16`, `lora`), schemes of sharding, options of torch's allocator, grammars, keys of phrases and tables.
ALSO = {
    "cause": {
        *("weights", "gradients", "optimizer_states", "activations", "logits", "attention_scores", "comm_buffers", "extra_models"),
        *("kv_cache", "rollout_engine", "mm_inputs", "fragmentation", *VOCABULARY["phase"]),
    },
    "remedy": {"bf16", "fp16", "pure_bf16", "lora", "fsdp", "zero2", "zero3", "expandable_segments", "chunked_loss", "fewer_workers"},
    "family": {"other", "nccl", "ray_oom"},
}
WORDS = {
    "cause": set(VOCABULARY["cause"]) - ALSO["cause"],
    "remedy": REMEDIES - ALSO["remedy"],
    "family": set(VOCABULARY["family"]) - ALSO["family"],
}


def literals(code: bytes) -> Iterator[tuple[int, str]]:
    """Every text in the code but its docstrings, with its line."""
    tree = ast.parse(code)
    told = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.lineno, node.value


def test_no_word_of_the_tables_stands_in_the_code() -> None:
    """Somebody who adds a family, or renames a remedy, edits tables alone."""
    assert all(len(words) > 5 for words in WORDS.values())
    words = set().union(*WORDS.values())
    quoted = re.compile(rf"[\"'](?:{'|'.join(words)})[\"']".encode())
    spoken = [
        f"{file.relative_to(PACKAGE.parent)}:{line}: {text}"
        for file in sorted(PACKAGE.glob("**/*.py"))
        if quoted.search(code := file.read_bytes())  # few files have to be parsed
        for line, text in literals(code)
        if text in words
    ]
    assert not spoken


def test_words_that_also_name_something_else_are_words_of_the_vocabulary() -> None:
    """The list of exemptions holds nothing that is gone."""
    assert ALSO["remedy"] <= REMEDIES
    assert set(VOCABULARY["family"]) >= ALSO["family"]


def test_families_and_what_messages_mean_are_of_the_vocabulary() -> None:
    """Every family has an entry, and every statement a family."""
    families = rule_files.table("families")["families"]
    assert list(families) == VOCABULARY["family"]
    assert {row["family"] for rows in rule_files.table("statements").values() for row in rows.values()} <= set(families)


def test_attributes_of_words_name_words() -> None:
    """A cause or remedy that an attribute lists exists."""
    for attribute in (
        "needs_evidence",
        "asked_first",
        "leaves_weights",
        "leaves_served_weights",
        "leaves_states",
        "leaves_others",
        "over_cards",
        "puts_right",
        "joins_plans",
        "returns_to_card",
    ):
        assert set(VOCABULARY[attribute]) <= REMEDIES
    for row in VOCABULARY["only_in"]:
        assert set(row["remedies"]) <= REMEDIES
        assert set(row["regimes"]) <= set(VOCABULARY["regime"])
    for attribute in ("fills_host", "fills_card", "causes_of_training", "held_by_others"):
        assert set(VOCABULARY["cause"]) >= set(VOCABULARY[attribute])
    assert set(VOCABULARY["releases"].values()) <= REMEDIES
    assert VOCABULARY["bad_release"] in VOCABULARY["cause"]
