"""The environment: releases of libraries, cards, files of the model (grammars/environment.lark)."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from diagnose import catalogue
from diagnose.errors import UserError
from diagnose.facts import Fact, declared, library_of
from diagnose.parse.events.log_events import role_of_name
from diagnose.parse.text import grammar_statements
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.parse.text.lines import same_stream
from diagnose.units import Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from diagnose.parse.text.grammar_statements import Statement
    from diagnose.parse.text.lines import Page

REACH = 256 << 10  # bytes of the head in which these lines are looked for
DUMP = 400  # lines of a printed model configuration
MOST = 64  # lines of each kind that are parsed

_VERSIONED = lazy_compile(
    rb"(?<![\w./-])`?(?:[Pp]y[Tt]orch|[Tt]orch|[Tt]ransformers|[Aa]ccelerate|[Dd]eep[Ss]peed|peft|PEFT|trl|TRL|llamafactory"
    rb"|axolotl|openrlhf|OpenRLHF|vllm|vLLM|sglang|lmdeploy|ray|bitsandbytes|[Ll]iger[-_][Kk]ernel|flash[-_]attn|verl|ms[-_]swift|swift)`?"
    rb"(?: version[^:\n]{0,16}: ?|==| {0,20}: ?| {1,40}| @ )v?\d{1,6}\.\d"
)
_CARD = lazy_compile(
    rb"GPU type: |\bname: (?:NVIDIA|Tesla|GeForce|Quadro) |, (?:NVIDIA|Tesla|AMD) [A-Z]"
    rb"|GPU \d+(?:-\d+)?: |GPU \d+(?:,\d+)*   |CUDA capacity: |Device: cuda:\d+ |\d ?x (?:NVIDIA|Tesla|AMD|A100|H100|H200|H800|A800|V100)"
    rb"|(?:\| {1,8}|\n)\d{1,3},? {1,8}(?:NVIDIA|Tesla) \w|/\|    (?:NVIDIA|Tesla|AMD) \w|\[\d{1,3}\] NVIDIA \w"
)
_CONFIG = lazy_compile(rb"Model config \w{1,80} \{")
#: A word that stands in each text that is looked for, near its beginning; and what the words of libraries are followed by.
_LIBRARIES = frozenset(
    b"orch ransformers ccelerate eepspeed eepSpeed peft PEFT trl TRL llamafactory axolotl openrlhf OpenRLHF vllm vLLM sglang lmdeploy ray"
    b" bitsandbytes iger flash verl swift".split()
)
_AFTER_NAME = b"` =:-_"
_CARDS = frozenset(b"NVIDIA Tesla GeForce Quadro AMD A100 H100 H200 H800 A800 V100".split()) | {b"GPU ", b"CUDA capacity: "}
_MODELS = frozenset((b"models--", b"loading configuration file", b"loading weights file", b"loading model: ", b"LLM engine (v"))
NEAR, LONG = 32, 128  # bytes before such a word in which its text begins, and behind it in which it is recognised
_ITEM_BEFORE = lazy_compile(r"(?:^|[:=|,;(\[*\-])\s*$")
_ITEM_AFTER = lazy_compile(r"\s*(?:$|[,.;:|)(\[\]])")
_MODEL = (
    lazy_compile(rb"models--(?P<owner>[\w.-]{1,80}?)--(?P<name>[\w.-]{1,120}?)/"),
    lazy_compile(rb"loading (?:configuration|weights) file (?P<path>/?[\w./-]{1,300})/[\w.-]{1,80}\.(?:json|safetensors|bin)"),
    lazy_compile(rb"(?<!error )loading model: (?P<path>[\w./-]{1,300})"),
    lazy_compile(rb"LLM engine \(v[\w.]{1,20}\) with config: model='(?P<path>[^'\n]{1,300})'"),
)
#: Where a name stands that may be another model's than the settings say.
_HINTS = (
    lazy_compile(rb"transformers_modules/(?P<path>[\w./-]{1,200})/[\w-]{1,80}\.py"),
    lazy_compile(rb"model checkpoint at (?P<path>[\w./-]{1,300}) (?:and|were|when)\b"),
    lazy_compile(rb"Loading (?:model|checkpoint) from (?P<path>[\w-]{1,80}/[\w.-]{1,120})(?=\s|$)"),
)
_HINT_WORDS = frozenset((b"transformers_modules/", b"model checkpoint at ", b"Loading model from ", b"Loading checkpoint from "))
#: Files of llama.cpp, whose weights are of other widths than those that are trained.
_GGUF = (
    lazy_compile(rb"general\.name[ \t]{1,20}(?:str[ \t]{1,20})?= (?P<path>[\w. -]{2,120}\w)"),
    lazy_compile(rb"(?<![\w./-])(?P<path>[\w./-]{1,300}\.gguf)\b"),
)
_GGUF_WORDS = frozenset((b"general.name", b".gguf"))
#: Organisations of the hub whose models people name in sentences and print from scripts.
_OWNERS = (
    b"Qwen meta-llama mistralai google deepseek-ai THUDM zai-org internlm OpenGVLab 01-ai baichuan-inc microsoft tiiuae EleutherAI"
    b" bigscience facebook openai unsloth NousResearch huggyllama lmsys HuggingFaceTB allenai bigcode llava-hf openbmb ibm-granite"
).split()
_HUB_WORDS = frozenset(owner + b"/" for owner in _OWNERS)
_HUB_NAME = lazy_compile(rb"(?<![\w./-])(?P<path>(?:" + b"|".join(_OWNERS) + rb")/[A-Za-z][\w.-]{2,100}\w)")
_ENGINE = lazy_compile(rb"LLM engine \(v(\d+\.\d+[\w.]*)\)")
_MAKERS = ("NVIDIA", "NVIDIA GeForce", "NVIDIA Graphics Device", "Tesla", "AMD", "GeForce", "Quadro")
#: A line of printed JSON; lines of other processes and progress bars may stand between them.
_JSON = r"\s*(?:\"[^\"\n]{0,200}\"\s*:?.{0,2000}|[{}\[\]]+,?|-?[\d.eE+-]+,?|(?:true|false|null),?)\s*$"
#: torch as it calls itself in its reports; no package of it is called so.
_REPORTED = {"pytorch": "torch"}


def facts(pages: Iterable[Page]) -> Iterator[Fact]:
    """Releases, cards and model, each from the first line that names it."""
    emitted: set[str] = set()
    for page in pages:
        if page.excerpt.offset >= REACH:
            continue
        for fact in (*_versions(page), *_cards(page), *_models(page), *_hinted_models(page)):
            if fact.name not in emitted:
                emitted.add(fact.name)
                yield fact


def _search_near_words(
    page: Page, words: frozenset[bytes], pattern: re.Pattern[bytes], start_word: bytes = b""
) -> Iterator[re.Match[bytes]]:
    """Matches of a pattern in the head of a page, searched only near these words (literals of which each match holds one)."""
    raw, spots = page.excerpt.raw, page.excerpt.spots
    stop = min(REACH, len(raw))
    start = end = 0
    for at, to in sorted((at, at + len(word)) for word in spots.among(words) for at in spots.places(word)):
        if to > stop or (start_word and raw[to : to + 1] not in start_word):
            continue
        if at - NEAR > end:
            yield from pattern.finditer(raw, start, end)
            start = at - NEAR
        end = min(stop, to + LONG)
    yield from pattern.finditer(raw, start, end)


# -- releases


def _versions(page: Page) -> Iterator[Fact]:
    parsed: set[int] = set()
    for match in _search_near_words(page, _LIBRARIES, _VERSIONED, _AFTER_NAME):
        index = page.index(page.excerpt.offset + match.start())
        if index not in parsed and len(parsed) < MOST:
            parsed.add(index)
            yield from _line_versions(page, index)
    engine = _ENGINE.search(page.excerpt.raw, 0, REACH) if page.excerpt.spots.has(b"LLM engine (v") else None
    if engine is not None:
        yield Fact("version.vllm", Version(engine[1].decode()), "log", page.witness(page.excerpt.offset + engine.start()))


def _line_versions(page: Page, index: int) -> Iterator[Fact]:
    text = page.line(index).text
    for statement in grammar_statements.parse_statements("environment", text):
        if statement.kind != "version" or not _is_installed(text, statement):
            continue
        package, release = (word.strip("`") for word in statement.words)
        name = package.lower().replace("_", "-")
        name = _REPORTED.get(name) or library_of(name)
        entry = declared(f"version.{name}")
        if entry is None:
            continue
        witness = page.witness(page.excerpt.offset + _offset(page, index, f"{package}"))
        yield Fact(f"version.{name}", Version(release), "log", witness)
        if entry.trainer:
            yield Fact("train.framework", name, "log", witness)


def _is_installed(text: str, statement: Statement) -> bool:
    """Whether a release is an item of a list; "needs torch 2.4" in a sentence says nothing about what is installed."""
    between = text[statement.start + len(statement.words[0]) : statement.end - len(statement.words[1])]
    line_start = text[: statement.start]
    item = line_start.rstrip(" \t-*")
    return "=" in between or ":" in between or not item or item[-1] in ",;|" or "  " in line_start[len(item) :]


def _offset(page: Page, index: int, word: str) -> int:
    """Offset in the page of a word of a line."""
    start, end = page.bounds(index)
    at = page.excerpt.raw.find(word.encode(), start, end)
    return at if at >= 0 else start


# -- cards


def _cards(page: Page) -> Iterator[Fact]:
    count, indexes = 0, set[str]()
    first: Fact | None = None
    place = None
    for match in islice(_search_near_words(page, _CARDS, _CARD), MOST):
        index = page.index(page.excerpt.offset + match.end() - 1)
        text = page.line(index).text[:400]
        for statement in grammar_statements.parse_statements("environment", text):
            if statement.kind not in ("card", "cards") or (statement.kind == "cards" and not _is_listed_item(text, statement)):
                continue
            name = statement.words[-1].strip()
            if text[statement.end :].lstrip().startswith("..") or name in _MAKERS:
                continue  # cut short by a table of old drivers: it names no card
            place = page.witness(page.excerpt.offset + _offset(page, index, name))
            first = first or Fact("hardware.gpu", name, "log", place)
            count = max(count, _number_of_cards(statement, indexes))
    if first is not None:
        yield first
    if first is not None and place is not None and max(count, len(indexes)) > 0:
        yield Fact("hardware.count", max(count, len(indexes)), "log", place)


def _is_listed_item(text: str, statement: Statement) -> bool:
    """Whether a line names cards as an item by themselves. In a sentence they may be anyone's: "it fits on my colleague's 2x A100"."""
    return _ITEM_BEFORE.search(text[: statement.start]) is not None and _ITEM_AFTER.match(text[statement.end :]) is not None


def _number_of_cards(statement: Statement, indexes: set[str]) -> int:
    """The number of cards that a line states; 0 if it names cards by index, which are added to `indexes`."""
    numbers = [int(number) for number in re.findall(r"\d{1,5}", statement.words[0])] if len(statement.words) > 1 else []
    if statement.kind == "cards":
        return numbers[0]
    if len(numbers) == 2 and "-" in statement.words[0]:  # GPU 0-7
        return numbers[1] - numbers[0] + 1
    indexes.update(str(number) for number in numbers)
    return 0


# -- the model


def _models(page: Page) -> Iterator[Fact]:
    patterns = _MODEL if page.excerpt.spots.among(_MODELS) else ()
    matches = sorted(
        ((match.start(), match) for pattern in patterns for match in pattern.finditer(page.excerpt.raw, 0, REACH)), key=lambda pair: pair[0]
    )
    for start, match in matches:
        groups = match.groupdict()
        name = (
            "/".join(groups[key].decode("utf-8", "replace") for key in ("owner", "name"))
            if "owner" in groups
            else groups["path"].decode("utf-8", "replace")
        )
        offset = page.excerpt.offset + start
        if role_of_name(page.around(offset)[0].actor) in (None, "actor") and "models--" not in name:
            yield Fact("model.path", name, "log", page.witness(offset))
            break
    yield from _printed_models(page)


def _hinted_models(page: Page) -> Iterator[Fact]:
    """Models by names that may be another one's than the settings say: folders of code, names on the hub in sentences, files of weights."""
    spots = page.excerpt.spots
    if spots.among(_HINT_WORDS):
        names = _names(page, _HINTS)
        yield from _hint(page, {name: at for name, at in names.items() if catalogue.model(name) or catalogue.params_of_name(name)})
    if spots.among(_HUB_WORDS):
        yield from _hint(page, {name: at for name, at in _names(page, (_HUB_NAME,)).items() if catalogue.model(name)})
    if spots.among(_GGUF_WORDS):
        known = ((shape, at) for name, at in _names(page, _GGUF).items() if (shape := catalogue.model(name)) is not None)
        for shape, at in islice(known, 1):
            yield Fact("model.id", shape.id, "derived", page.witness(page.excerpt.offset + at))
            yield Fact("model.family", shape.family, "derived", page.witness(page.excerpt.offset + at))


def _names(page: Page, patterns: Iterable[re.Pattern[bytes]]) -> dict[str, int]:
    """The names that the patterns find, each with its first place."""
    places: dict[str, int] = {}
    for pattern in patterns:
        for match in islice(pattern.finditer(page.excerpt.raw, 0, REACH), MOST):
            places.setdefault(match["path"].decode("ascii", "replace"), match.start())
    return places


def _hint(page: Page, places: Mapping[str, int]) -> Iterator[Fact]:
    """The model that is named, unless several are: nobody knows which of them is trained."""
    if len({shape.id if (shape := catalogue.model(name)) else name for name in places}) == 1:
        name, at = next(iter(places.items()))
        yield Fact("model.path", name, "derived", page.witness(page.excerpt.offset + at))


def _printed_models(page: Page) -> Iterator[Fact]:
    """Dimensions of models whose configuration is printed in full."""
    raw, spots = page.excerpt.raw, page.excerpt.spots
    built = spots.first(b"Instantiating ", 0, REACH)
    places = [at for at in spots.places(b"Model config ") if _CONFIG.match(raw, at, REACH if built < 0 else built)]
    for at in reversed(places[-4:]):  # the tokenizer's and the processor's print theirs as well; the last one is built
        shape = _shape(page, at)
        if shape is not None:
            yield Fact("model.shape", shape, "log", page.witness(page.excerpt.offset + at))
            return


def _shape(page: Page, at: int) -> catalogue.Model | None:
    """The model described by the JSON behind an offset; None where that is mixed up, cut or lacks dimensions."""
    index = page.index(page.excerpt.offset + at)
    prefix = page.line(index).prefix
    lines = ["{"]
    for number in range(index + 1, min(index + DUMP, len(page))):
        line = page.line(number)
        if same_stream(line.prefix, prefix) and re.match(_JSON, line.text):
            lines.append(line.text)
            if line.text.startswith("}"):
                break
    return _model_of("\n".join(lines))


@lru_cache(maxsize=256)
def _model_of(text: str) -> catalogue.Model | None:
    """The model of a printed configuration; cached, because the same one is trained in many jobs."""
    try:
        data = json.loads(text)
        return catalogue.model_of_config(data) if isinstance(data, dict) else None
    except (ValueError, RecursionError, UserError):
        return None
