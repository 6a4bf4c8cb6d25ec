"""Every part of the redaction rules is needed: without it an example is masked no more, or something harmless is.

A mutant lacks a row of rules/redactions.yaml, one of its signs, one branch of its pattern, or one word of rules/secret_names.yaml. It is
caught where an example of its row no longer gives what it gives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from collected import for_each
from redaction import Maker
from sweep import sample

from diagnose import rule_files
from diagnose.render.parts import assigned_secrets, redaction
from diagnose.render.parts.redaction import Masker, Redaction, redactions

ROWS: list[dict[str, Any]] = rule_files.table("redactions")
NAMES: dict[str, Any] = rule_files.table("secret_names")
MAKER = Maker(7)


def examples(row: dict[str, Any]) -> list[str]:
    """Those of a row, alone and within a line."""
    made = [MAKER.expand(text) for text in (*row["masks"], *row.get("keeps", ()))]
    return [*made, *(f"x {text} y" for text in made)]


def branches(pattern: str) -> Iterator[tuple[int, int]]:
    """Where each branch of each alternation of a regular expression stands, with the bar that parts it from its neighbour."""
    opened, groups, place = [0], [], 0
    bars: dict[int, list[int]] = {0: []}
    while place < len(pattern):
        sign = pattern[place]
        if sign == "\\":
            place += 1
        elif sign == "[":
            place = re.compile(r"\^?\]?(?:\\.|[^\]\\])*").match(pattern, place + 1).end()  # type: ignore[union-attr]
        elif sign == "(":
            head = re.compile(r"\((?:\?(?:P<\w+>|[:=!>]|<[=!]))?").match(pattern, place)
            assert head
            place = head.end() - 1
            opened.append(place + 1)
            bars[place + 1] = []
        elif sign == "|":
            bars[opened[-1]].append(place)
        elif sign == ")":
            groups.append((opened.pop(), place))
        place += 1
    for start, end in [*groups, (0, len(pattern))]:
        if bars[start]:
            edges = [start - 1, *bars[start], end]
            for number, (left, right) in enumerate(pairwise(edges)):
                yield (left + 1, right + 1) if number == 0 else (left, right)


def mutants(rule: Redaction) -> Iterator[tuple[str, Redaction | None]]:
    """A rule with one part less, and which; None: without it."""
    yield "the row", None
    for sign in rule.signs:
        yield sign, rule._replace(signs=tuple(other for other in rule.signs if other != sign) or ("\0",))
    for start, end in branches(rule.pattern):
        yield rule.pattern[start:end], rule._replace(pattern=rule.pattern[:start] + rule.pattern[end:])


@for_each("place", sample(range(len(ROWS)), 12))
def test_every_part_of_a_row_is_needed(place: int) -> None:
    rules, texts = redactions(), examples(ROWS[place])
    usual = [Masker()(text) for text in texts]
    survivors = []
    for part, mutant in mutants(rules[place]):
        changed = (*rules[:place], *([mutant] if mutant else []), *rules[place + 1 :])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(redaction, "redactions", lambda changed=changed: changed)
            if [Masker()(text) for text in texts] == usual:
                survivors.append(part)
    assert not survivors, f"no example of {ROWS[place]['name']} needs {survivors}"


#: What is set beside names, by the list of rules/secret_names.yaml that decides about it: {} is a word of that list.
SETTINGS = {
    "owners": "{}_key: quietriver",
    "plain": "{}_token: 0123456789abcdef8f3a",
    "tails": "api_key_{}: 0123456789abcdef8f3a",
    "literals": 'password: "{}"',
    "prose": "password: {} four of seven times",
}
#: Values that stand for one, in the order of the patterns; a line of each branch.
PLACEHOLDERS = """
<your key>
[REDACTED]
???????
$HF_TOKEN
${FROM_VAULT:-x9!f3a88}
$(cat ~/x9!f3a88)
${{ x9!f3a88 }}
$env:HF_TOKEN
%HF_TOKEN%
{{ x9!f3a88 }}
{token!r}
@secret(x9!f3a88)
your-secret-api-key-here
your-own-here
your-own-key
!env x9!f3a88
!vault x9!f3a88
!secret x9!f3a88
!ref x9!f3a88
!include x9!f3a88
env:x9!f3a88
vault:x9!f3a88
file:x9!f3a88
secret/x9!f3a88
ssm:x9!f3a88
keyring:x9!f3a88
enter-the-token
insert-the-secret
paste-the-password
replace-the-pass
enter-the-credential
os.q8f3a88
process.q8f3a88
secret.q8f3a88
settings.q8f3a88
config.q8f3a88
cfg.q8f3a88
conf.q8f3a88
arg.q8f3a88
opt.q8f3a88
options.q8f3a88
self.q8f3a88
env.q8f3a88
environ.q8f3a88
params.q8f3a88
kwargs.q8f3a88
getpass.q8f3a88
st.q8f3a88
vars.q8f3a88
var.q8f3a88
local.q8f3a88
data.q8f3a88
""".strip().splitlines()


def read_with(patch: pytest.MonkeyPatch, names: dict[str, Any], text: str) -> bool:
    """Whether anything in a text is a secret by other lists of names."""
    patch.setattr(rule_files, "table", lambda _: names)
    assigned_secrets._names.cache_clear()
    return any(assigned_secrets.secrets(text))


@for_each("part", SETTINGS)
def test_every_word_about_names_and_values_is_needed(part: str) -> None:
    survivors = []
    for word in NAMES[part]:
        text = SETTINGS[part].format(word)
        with pytest.MonkeyPatch.context() as patch:
            less = {**NAMES, part: [other for other in NAMES[part] if other != word]}
            if read_with(patch, less, text) == read_with(patch, NAMES, text):
                survivors.append(word)
    assigned_secrets._names.cache_clear()
    assert not survivors


@for_each("row", NAMES["names"])
def test_every_last_word_of_a_name_is_needed(row: dict[str, Any]) -> None:
    survivors = []
    for word in row["words"]:
        others = [other for other in NAMES["names"] if other is not row]
        with pytest.MonkeyPatch.context() as patch:
            less = {**NAMES, "names": [*others, {**row, "words": [other for other in row["words"] if other != word]}]}
            if read_with(patch, less, f"{word}: 0123456789abcdef8f3a") or not read_with(patch, NAMES, f"{word}: 0123456789abcdef8f3a"):
                survivors.append(word)
    assigned_secrets._names.cache_clear()
    assert not survivors


def test_every_pattern_of_a_placeholder_is_needed() -> None:
    survivors = []
    with pytest.MonkeyPatch.context() as patch:
        texts = [f"password: {shape.format(value)}" for value in PLACEHOLDERS for shape in ("{}", '"{}"')]
        assert not any(read_with(patch, NAMES, text) for text in texts)
        for place, pattern in enumerate(NAMES["placeholders"]):
            for start, end in [*branches(pattern), (0, len(pattern))]:
                changed = [pattern[:start] + pattern[end:] or "(?!)"]
                less = {**NAMES, "placeholders": NAMES["placeholders"][:place] + changed + NAMES["placeholders"][place + 1 :]}
                if not any(read_with(patch, less, text) for text in texts):
                    survivors.append(pattern[start:end])
    assigned_secrets._names.cache_clear()
    assert not survivors
