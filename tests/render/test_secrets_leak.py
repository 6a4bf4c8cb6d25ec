"""Secrets of every kind in every carrier are masked, nothing of corpus/ is taken for one, and no rule can go without a leak."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redaction as benchmark
from collected import for_each
from redaction import Maker

from diagnose import rule_files
from diagnose.render.parts import assigned_secrets, redaction
from diagnose.render.parts.redaction import Masker

ROWS: list[dict[str, Any]] = rule_files.table("redactions")
NAMES: dict[str, Any] = rule_files.table("secret_names")


@for_each("seed", [1, 2026])
def test_what_is_promised_leaks_never_and_all_hardly(seed: int) -> None:
    made, lost = benchmark.leaked(seed)
    assert len(made) > 400
    assert [sample for sample in lost if sample.kind != benchmark.UNMARKED] == []
    assert len(lost) <= len(made) * 0.02


def test_no_line_of_the_corpus_is_taken_for_a_secret() -> None:
    lines = list(benchmark.changed_lines())
    assert lines, "the corpus names users and hosts"
    assert [line for line in lines if benchmark.placeholders(line[2]) - benchmark.NAMES] == []


@for_each("row", [row["name"] for row in ROWS])
def test_every_rule_is_needed(row: str) -> None:
    """Without a row of rules/redactions.yaml an example of it leaks."""
    index = [entry["name"] for entry in ROWS].index(row)
    maker = Maker(3)
    examples = [f"x {maker.expand(example)} y" for example in ROWS[index]["masks"]]
    whole = redaction.redactions()
    rest = (*whole[:index], *whole[index + 1 :])

    def is_missed(example: str) -> bool:
        with_all, without = Masker(), Masker()
        without._redactions = rest
        with_all(example)
        return any(max(re.findall(r"[\w.-]+", secret), key=len) in without(example) for _, secret in with_all._placeholders)

    assert any(map(is_missed, examples))


@contextmanager
def names_without(part: str, entry: Any) -> Iterator[None]:
    """rules/secret_names.yaml without an entry of one of its lists."""
    if part == "words":
        data = {**NAMES, "names": [{**row, "words": [word for word in row["words"] if word != entry]} for row in NAMES["names"]]}
    else:
        data = {**NAMES, part: [each for each in NAMES[part] if each != entry]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rule_files, "table", lambda _: data)
        assigned_secrets._names.cache_clear()
        try:
            yield
        finally:
            patch.undo()
            assigned_secrets._names.cache_clear()


def seen(text: str) -> bool:
    return any(assigned_secrets.secrets(text))


WORDS = [word for row in NAMES["names"] for word in row["words"]]
#: Pairs of a list of rules/secret_names.yaml and an entry, with a text that is masked because of it.
MASKED = [
    *(("words", word, f"{word}: {Maker(5).expand('{alnum:32}')}") for word in WORDS),
    *(("owners", owner, f"{owner}_key: quietly") for owner in NAMES["owners"]),
    *(("tails", tail, f"api_key_{tail}: quietly") for tail in NAMES["tails"]),
]
#: The same, with a text that is kept because of it.
KEPT = [
    *(("plain", plain, f"{plain}_key: {Maker(5).expand('{alnum:32}')}") for plain in NAMES["plain"]),
    *(("literals", literal, f"password: {literal}") for literal in NAMES["literals"]),
    *(("prose", word, f"INFO password: {word} others") for word in NAMES["prose"]),
]


@for_each("part, entry, text", MASKED)
def test_what_a_name_marks_is_masked(part: str, entry: str, text: str) -> None:
    assert seen(text)
    with names_without(part, entry):
        assert not seen(text)


@for_each("part, entry, text", KEPT)
def test_what_is_no_secret_is_kept(part: str, entry: str, text: str) -> None:
    assert not seen(text)


@for_each(
    "value",
    [
        "<your key>",
        "[REDACTED]",
        "xxxx",
        "***",
        "${KEY}",
        "$(cat key)",
        "${{ secrets.KEY }}",
        "%KEY%",
        "{{ key }}",
        "!vault abc",
        "env:KEY",
        "your-api-key-here",
        "os.environ.KEY",
    ],
)
def test_what_stands_for_a_secret_is_kept(value: str) -> None:
    assert not seen(f"password: {value}")
    assert not seen(f'"password": "{value}"')


@for_each(
    "text",
    [
        "wandb_key: *",
        "  12 | wandb_key: *",
        "> wandb_key: '*'",
        '+ "wandb_key": "*",',
        '\\"wandb_key\\": \\"*\\"',
        "| `wandb_key` | `*` |",
        "--wandb_key=* --x",
        "wandb_key=*;",
        "(wandb_key=*)",
    ],
)
def test_a_secret_has_one_placeholder_however_it_is_written(text: str) -> None:
    secret = Maker(7).expand("{alnum:32}")
    mask = Masker()
    mask(f"wandb_key: {secret}")
    assert mask(text.replace("*", secret)) == text.replace("*", "<secret-1>")


@for_each(
    "piece",
    [
        "key=",
        'key="',
        "password ",
        "token: ",
        "api_key",
        "-----BEGIN PRIVATE KEY-----",
        "key: |\n  a\n",
        "key: [a,",
        "login ",
        "A/",
        "curl ",
        "1.1.",
    ],
)
def test_time_grows_as_the_text_does(piece: str) -> None:
    """No pattern looks at a text twice: four times as much takes about four times as long."""

    def seconds(size: int) -> float:
        start = time.process_time()
        Masker()(piece * (size // len(piece)))
        return time.process_time() - start

    assert seconds(80_000) < 10 * seconds(20_000) + 0.2
