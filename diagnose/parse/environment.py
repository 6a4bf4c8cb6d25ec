"""Where the job ran: library releases, cards, the model's files (grammars/environment.lark)."""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import TYPE_CHECKING

from diagnose import catalogue
from diagnose.complaints import Complaint
from diagnose.facts import Fact, declared
from diagnose.parse import wording
from diagnose.parse.events import role
from diagnose.units import Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from diagnose.parse.lines import Page
    from diagnose.parse.wording import Statement

REACH = 256 << 10  # bytes of the head in which these lines are looked for
DUMP = 400  # lines of a printed model configuration
MOST = 64  # lines of each kind that are parsed

_VERSIONED = re.compile(
    rb"(?<![\w./-])`?(?:[Pp]y[Tt]orch|torch|[Tt]ransformers|[Aa]ccelerate|[Dd]eep[Ss]peed|peft|PEFT|trl|TRL|llamafactory"
    rb"|axolotl|openrlhf|OpenRLHF|vllm|vLLM|ray|bitsandbytes|[Ll]iger[-_][Kk]ernel|flash[-_]attn|verl|ms[-_]swift|swift)`?"
    rb"(?: version[^:\n]{0,16}: ?|==| ?: ?| {1,40}| @ )v?\d{1,6}\.\d"
)
_CARD = re.compile(
    rb"GPU type: |, (?:NVIDIA|Tesla|AMD) [A-Z]"
    rb"|GPU \d+(?:-\d+)?: |CUDA capacity: |\d ?x (?:NVIDIA|Tesla|AMD|A100|H100|H200|H800|A800|V100)"
    rb"|(?:\| {1,8}|\n)\d{1,3},? {1,8}(?:NVIDIA|Tesla) \w"
)
_MODEL = (
    re.compile(rb"models--(?P<owner>[\w.-]{1,80}?)--(?P<name>[\w.-]{1,120}?)/"),
    re.compile(rb"loading (?:configuration|weights) file (?P<path>/?[\w./-]{1,300})/[\w.-]{1,80}\.(?:json|safetensors|bin)"),
    re.compile(rb"loading model: (?P<path>[\w./-]{1,300})"),
    re.compile(rb"LLM engine \(v[\w.]{1,20}\) with config: model='(?P<path>[^'\n]{1,300})'"),
)
_ENGINE = re.compile(rb"LLM engine \(v(\d+\.\d+[\w.]*)\)")
_NAMES = {"pytorch": "torch", "liger-kernel": "liger", "flash-attn": "flash_attn", "ms-swift": "swift"}
_FRAMEWORKS = ("llamafactory", "axolotl", "openrlhf", "verl", "swift")


def facts(pages: Iterable[Page]) -> Iterator[Fact]:
    """Releases, cards and the model, each as the first line says it."""
    known: set[str] = set()
    for page in pages:
        if page.excerpt.offset >= REACH:
            break
        for fact in (*_versions(page), *_cards(page), *_models(page)):
            if fact.name not in known:
                known.add(fact.name)
                yield fact


# -- releases


def _versions(page: Page) -> Iterator[Fact]:
    parsed: set[int] = set()
    for match in _VERSIONED.finditer(page.excerpt.raw, 0, REACH):
        index = page.index(page.excerpt.offset + match.start())
        if index not in parsed and len(parsed) < MOST:
            parsed.add(index)
            yield from _line_versions(page, index)
    engine = _ENGINE.search(page.excerpt.raw, 0, REACH)
    if engine is not None:
        yield Fact("version.vllm", Version(engine[1].decode()), "log", page.witness(page.excerpt.offset + engine.start()))


def _line_versions(page: Page, index: int) -> Iterator[Fact]:
    text = page.line(index).text
    for said in wording.statements("environment", text):
        if said.kind != "version" or not _installed(text, said):
            continue
        library, release = (word.strip("`") for word in said.words)
        name = library.lower().replace("_", "-")
        name = _NAMES.get(name, name)
        if declared(f"version.{name}") is None:
            continue
        witness = page.witness(page.excerpt.offset + _offset(page, index, f"{library}"))
        yield Fact(f"version.{name}", Version(release), "log", witness)
        if name in _FRAMEWORKS:
            yield Fact("train.framework", name, "log", witness)


def _installed(text: str, said: Statement) -> bool:
    """Whether a release is one of a list; "needs torch 2.4" in a sentence says nothing of what is installed."""
    between = text[said.start + len(said.words[0]) : said.end - len(said.words[1])]
    before = text[: said.start]
    item = before.rstrip(" \t-*")
    return "=" in between or ":" in between or not item or item[-1] in ",;|" or "  " in before[len(item) :]


def _offset(page: Page, index: int, word: str) -> int:
    """Where a word of a line stands in the page's bytes."""
    start, end = page.bounds(index)
    at = page.excerpt.raw.find(word.encode(), start, end)
    return at if at >= 0 else start


# -- cards


def _cards(page: Page) -> Iterator[Fact]:
    count, indexes = 0, set[str]()
    first: Fact | None = None
    place = None
    for match in islice(_CARD.finditer(page.excerpt.raw, 0, REACH), MOST):
        index = page.index(page.excerpt.offset + match.end() - 1)
        for said in wording.statements("environment", page.line(index).text[:400]):
            if said.kind not in ("card", "cards"):
                continue
            name = said.words[-1].strip()
            place = page.witness(page.excerpt.offset + _offset(page, index, name))
            first = first or Fact("hardware.gpu", name, "log", place)
            count = max(count, _number_of_cards(said, indexes))
    if first is not None:
        yield first
    if first is not None and place is not None and max(count, len(indexes)) > 0:
        yield Fact("hardware.count", max(count, len(indexes)), "log", place)


def _number_of_cards(said: Statement, indexes: set[str]) -> int:
    """How many cards a line speaks of; an index that it names is remembered."""
    numbers = [int(number) for number in re.findall(r"\d{1,5}", said.words[0])] if len(said.words) > 1 else []
    if said.kind == "cards":
        return numbers[0]
    if len(numbers) == 2:  # GPU 0-7
        return numbers[1] - numbers[0] + 1
    indexes.update(str(number) for number in numbers)
    return 0


# -- the model


def _models(page: Page) -> Iterator[Fact]:
    found = sorted(
        ((match.start(), match) for pattern in _MODEL for match in pattern.finditer(page.excerpt.raw, 0, REACH)), key=lambda pair: pair[0]
    )
    for start, match in found:
        groups = match.groupdict()
        name = (
            "/".join(groups[key].decode("utf-8", "replace") for key in ("owner", "name"))
            if "owner" in groups
            else groups["path"].decode("utf-8", "replace")
        )
        offset = page.excerpt.offset + start
        if role(page.around(offset)[0].actor) in (None, "actor") and "models--" not in name:
            yield Fact("model.path", name, "log", page.witness(offset))
            break
    yield from _dumped(page)


def _dumped(page: Page) -> Iterator[Fact]:
    """The dimensions of a model whose configuration is printed in full."""
    at = page.excerpt.raw.find(b"Model config ", 0, REACH)
    if at < 0:
        return
    index = page.index(page.excerpt.offset + at)
    lines = ["{"]
    for after in range(index + 1, min(index + DUMP, len(page))):
        lines.append(page.line(after).text)
        if lines[-1].startswith("}"):
            break
    try:
        data = json.loads("\n".join(lines))
        shape = catalogue.model_of_config(data) if isinstance(data, dict) else None
    except (ValueError, RecursionError, Complaint):
        return  # interleaved, cut, or without the dimensions
    if shape is not None:
        yield Fact("model.shape", shape, "log", page.witness(page.excerpt.offset + at))
