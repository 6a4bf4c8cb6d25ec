"""Facts of the run that lines of the log state (rules/log_lines.yaml, grammars/log_line.lark)."""

from __future__ import annotations

import re
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from diagnose import rule_files
from diagnose.facts import Fact, Origin, Value, declared
from diagnose.parse.events import order
from diagnose.parse.events.log_events import role_of_name
from diagnose.parse.facts import echoed_commands, settings_dumps
from diagnose.parse.text import grammar_statements
from diagnose.parse.text.find_words import find_word
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.parse.text.lines import REACH, lines_below
from diagnose.records import NamedTuple
from diagnose.units import Size, Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import TypedDict

    from diagnose.facts import Witness
    from diagnose.parse.text.lines import Page

    class LineRow(TypedDict, total=False):
        says: str
        fact: str
        value: Value
        take: list[str]
        before: bool
        pick: str
        follows: str
        after: str
        below: bool
        unit: str
        decimal: bool
        rounded: bool
        beside: str
        unless: str
        rest: str
        hint: bool
        keys: Mapping[str, str]
        sum: bool
        also: Mapping[str, Value]


#: Bytes at either end of an excerpt, and excerpts, in which words that tell the kind of program are sought.
_LOOK, _PAGES = 16 << 10, 4

#: Significant figures that a rounded count must have: half a unit of the last is then less than a ten-thousandth of it.
CLOSE = 5000
_DTYPES = {"torch.float32": "fp32", "torch.float16": "fp16", "torch.bfloat16": "bf16"}
#: After which of DeepSpeed's captions the states are in place.
_INITIALISED = lazy_compile(r"After initializ|initialize \[end\]|[Aa]fter .*\binit")
_CAPTION = lazy_compile(r"^\s*(?:Before|After|[Bb]egin|[Ee]nd|[Ss]tage|DeepSpeed)")


#: What stands at the end of a log that may have been cut within it.
_LAST_WORD = lazy_compile(r"[\w.,+%-]{1,400}$")
#: A day near the start of a line, with a time behind it; and how far before the failure it is sought.
_DAY = lazy_compile(rb"^.{0,40}?(?<!\d)(20[12]\d)[-/](0[1-9]|1[0-2])[-/](0[1-9]|[12]\d|3[01])[T _]\d\d:\d\d:\d\d", re.MULTILINE)
_SINCE = 64 << 10
_WITHIN = 46  # bytes of a line in which its year stands


class Place(NamedTuple):
    """A place in the job's logs: page, and offset in its input."""

    page: Page
    offset: int

    @property
    def witness(self) -> Witness:
        return self.page.witness(self.offset)

    @property
    def is_cut(self) -> bool:
        """Whether the log ends within this line: its last figure may be a part of one."""
        return self.page.bounds(self.page.index(self.offset))[1] == len(self.page.excerpt.raw) and bool(self.page.cut_off)

    @property
    def line(self) -> bytes:
        """The raw line, as far as it is looked at."""
        start, end = self.page.bounds(self.page.index(self.offset))
        return self.page.excerpt.raw[start : min(end, start + REACH)]


def facts(pages: Sequence[Page], end: Mapping[str, int]) -> Iterator[Fact]:
    """What the lines of rules/log_lines.yaml say. `end`: for each input the offset of its failure; figures that grow are read before it."""
    by_name: dict[str, Fact] = {}
    for row in _rows_present(pages):
        place = _find(row, pages, end)
        for fact in _said(row, place) if place is not None else ():
            by_name.setdefault(fact.name, fact)
            yield fact
    yield from _regime_words(pages)
    yield from world_from_banner(by_name)
    yield from echoed_commands.world_info_facts(pages)
    yield from _memory_lines(pages)
    yield from order.root_rank(pages)
    yield from _day(pages, end)


def _day(pages: Sequence[Page], end: Mapping[str, int]) -> Iterator[Fact]:
    """The day of the failure by the last time stamp before it: a library released later was not installed."""
    for page in pages:
        raw, at = page.excerpt.raw, end.get(page.source, -1) - page.excerpt.offset
        if not 0 <= at <= len(raw):
            continue
        line = raw.find(b"\n", at)
        stop = line if line >= 0 else len(raw)
        starts = (
            start
            for start in _line_starts_before(raw, stop, max(0, at - _SINCE))
            if raw.find(b"20", start, min(start + _WITHIN, stop)) >= 0
        )
        last_match = next((match for start in starts if (match := _DAY.match(raw, start, stop))), None)
        if last_match is not None:
            year, month, day = map(int, last_match.groups())
            yield Fact("log.day", Version(f"{year}.{month}.{day}"), "log", page.witness(page.excerpt.offset + last_match.start()))
            return


def _line_starts_before(raw: bytes, stop: int, first: int) -> Iterator[int]:
    """Offsets of line starts between two places, last first."""
    while stop >= first:
        newline = raw.rfind(b"\n", max(0, first - 1), stop)
        if newline < 0 and first:
            return
        yield newline + 1
        stop = newline


@cache
def _rows() -> dict[bytes, list[int]]:
    """Indexes of the table's rows by their words."""
    rows: dict[bytes, list[int]] = {}
    for index, row in enumerate(rule_files.table("log_lines")):
        rows.setdefault(row["says"].encode(), []).append(index)
    return rows


@cache
def _words() -> frozenset[bytes]:
    return frozenset(_rows())


def _regime_words(pages: Sequence[Page]) -> Iterator[Fact]:
    """Words near the start and the end of the log that tell what kind of program wrote it, one for each meaning (rules/regimes)."""
    missing = list(_words_of_regimes())
    for page in pages[:_PAGES]:
        raw = page.excerpt.raw
        parts = [(0, raw)] if len(raw) <= 2 * _LOOK else [(0, raw[:_LOOK]), (len(raw) - _LOOK, raw[-_LOOK:])]
        for start, part in parts:
            for words in list(missing):
                word, at = next(((word, at) for word in words if (at := find_word(part, word)) >= 0), (b"", -1))
                if at >= 0:
                    missing.remove(words)
                    yield Fact("run.word", word.decode(), "log", page.witness(page.excerpt.offset + start + at))


@cache
def _words_of_regimes() -> tuple[tuple[bytes, ...], ...]:
    """The words of rules/regimes, those of one regime and weight together, and those of one program."""
    rules = rule_files.table("regimes").values()
    groups = [words for rule in rules for words in rule.get("words", {}).values()]
    groups += [row["words"] for rule in rules for row in rule.get("programs", ()) if "words" in row]
    return tuple(tuple(word.encode() for word in words) for words in groups)


def _rows_present(pages: Sequence[Page]) -> list[LineRow]:
    """The rows whose words occur in the pages."""
    words = {word for page in pages for word in page.excerpt.spots.among(_words())}
    table = rule_files.table("log_lines")
    return [table[index] for index in sorted(index for word in words for index in _rows()[word])]


def _find(row: LineRow, pages: Sequence[Page], end: Mapping[str, int]) -> Place | None:
    """The first line that fits a row, or the last before the failure; only of roles that train, where a line names its role."""
    last = row.get("pick") == "last"
    literal = row["says"].encode()
    for page in reversed(pages) if last else pages:
        stop = min(len(page.excerpt.raw), max(0, end.get(page.source, 1 << 62) - page.excerpt.offset)) if last else len(page.excerpt.raw)
        for at in _occurrences(page, literal, stop, last):
            place = Place(page, page.excerpt.offset + at)
            if _speaks(row, place):
                return place
    return None


def _occurrences(page: Page, literal: bytes, stop: int, last: bool) -> Iterator[int]:
    """The first few offsets of a literal, from the start or from the end."""
    spots = page.excerpt.spots
    at = spots.last(literal, 0, stop) if last else spots.first(literal, 0, stop)
    for _ in range(16):
        if at < 0:
            return
        yield at
        at = spots.last(literal, 0, at) if last else spots.first(literal, at + 1, stop)


def _speaks(row: LineRow, place: Place) -> bool:
    """Whether the line at a place fits the row's other conditions."""
    prefix, _, line_rest = place.page.around(place.offset)
    names = [row.get("fact", ""), *row.get("take", ())]
    if "keys" not in row and not any(name.startswith("rollout.") for name in names) and role_of_name(prefix.actor) not in (None, "actor"):
        return False
    if "beside" in row and row["beside"].encode() not in place.line:
        return False
    if "unless" in row and row["unless"].encode() in place.line:
        return False
    return "follows" not in row or re.search(row["follows"], line_rest[len(row["says"]) :]) is not None


def _said(row: LineRow, place: Place) -> Iterator[Fact]:
    """The facts that a row reads from a line."""
    _, line_start, line_rest = place.page.around(place.offset)
    text = line_start if row.get("before") else line_rest[len(row["says"]) :]
    if place.is_cut and not row.get("before"):
        text = _LAST_WORD.sub("", text)
    if row.get("below"):
        text = next((below for _, below in lines_below(place.page, place.page.index(place.offset), 1)), "")
    if "after" in row:
        text = text.partition(row["after"])[2]
    pairs: list[tuple[str, Value]] = [(row["fact"], row["value"])] if "fact" in row else []
    if "rest" in row and text.strip() and not place.is_cut:
        pairs.append((row["rest"], text.strip()[:400]))
    if "keys" in row:
        pairs += settings_dumps.parse_arguments(text, row["keys"])
    if "take" in row:
        texts = values(text)
        texts = texts[-len(row["take"]) :] if row.get("before") else texts
        if row.get("sum"):
            pairs += [(row["take"][0], _sum([_typed(row["take"][0], value, row) for value in texts]))]
            texts = []
        pairs += [(name, _typed(name, value, row)) for name, value in zip(row["take"], texts, strict=False) if name]
    pairs = [(name, value) for name, value in pairs if value is not None]
    if pairs:
        origin: Origin = "derived" if row.get("hint") else "log"
        yield from (Fact(name, value, origin, place.witness) for name, value in (*pairs, *row.get("also", {}).items()))


def _sum(printed: Sequence[Value]) -> Value:
    """All sizes, or all counts, together; None without any."""
    sizes = [value for value in printed if isinstance(value, Size)]
    counts = [value for value in printed if isinstance(value, int)]
    return sum(sizes[1:], sizes[0]) if sizes else sum(counts) if counts else None


def values(text: str) -> list[str]:
    """The numbers, sizes and data types in a text, in order."""
    return [
        statement.words[0]
        for statement in grammar_statements.parse_statements("log_line", grammar_statements.collapse_blanks(text[:400]))
        if statement.kind == "value"
    ]


def _typed(name: str, text: str, row: LineRow) -> Value:
    """The text as a value of the fact's kind; None where it is of another."""
    entry = declared(name)
    kind = entry.kind if entry is not None else ""
    if kind == "size":
        return _decimal(text) if row.get("decimal") else grammar_statements.parse_size(f"{text} {row.get('unit', '')}", binary=True)
    if kind == "count":
        return _count((text.partition(".")[0] if row.get("rounded") else text).replace(",", ""))
    if kind == "ratio":
        return float(text) if re.fullmatch(r"\d{1,15}(\.\d+)?", text) else None
    if kind == "version":
        return Version(text) if re.fullmatch(r"\d{1,6}\.\d[\w.+]{0,40}", text) else None
    return _DTYPES.get(text)


def _count(digits: str) -> int | None:
    """A count. Of thousands, millions or billions only if printed precisely enough to calculate with, unlike 7.62B."""
    match = re.fullmatch(r"(\d{1,9})\.?(\d{0,9}) ?([KMB])", digits)
    if match is None:
        return int(digits) if digits.isdecimal() and len(digits) < 16 else None
    scale = {"K": 3, "M": 6, "B": 9}[match[3]]
    figures = int(match[1] + match[2])
    return figures * 10**scale // 10 ** len(match[2]) if figures >= CLOSE else None


def _decimal(text: str) -> Size | None:
    """A size from a program whose GB are 10^9 bytes."""
    match = re.fullmatch(r"(\d{1,6})(?:\.(\d{1,6}))? ?GB", text)
    if match is None:
        return None
    places = len(match[2] or "")
    nearest, slop = int(match[1] + (match[2] or "")) * 10 ** (9 - places), 10 ** (9 - places) // 2
    return Size(max(0, nearest - slop), nearest + slop, nearest, text)


# -- lines that need more than their own words


def _memory_lines(pages: Sequence[Page]) -> Iterator[Fact]:
    """DeepSpeed's memory lines: what was allocated after an engine was initialised, for the trained model and for the critic."""
    if not any(page.excerpt.spots.any((b"Critic", b"critic_")) for page in pages):
        lines = ((page, at) for page in reversed(pages) for at in reversed(page.excerpt.spots.places(b"Max_MA ")))
        yield from islice(filter(None, (_memory_line(page, at) for page, at in lines)), 1)
        return
    by_name: dict[str, Fact] = {}
    for page in pages:
        for at in page.excerpt.spots.places(b"Max_MA "):
            fact = _memory_line(page, at)
            if fact is not None:
                by_name[fact.name] = fact
    yield from by_name.values()


def _memory_line(page: Page, at: int) -> Fact | None:
    offset = page.excerpt.offset + at
    index = page.index(offset)
    line = page.line(index)
    caption = next(_lines_above(page, index), "")
    if _CAPTION.match(caption) and not _INITIALISED.search(caption):
        return None
    printed = re.search(r"\bMA (\d{1,9}(?:\.\d{1,9})?) GB", line.text)
    # DeepSpeed rounds to two decimals and prints no zeros at the end: 0.8 is 0.80
    exact = Size.printed(f"{float(printed[1]):.2f}", "GB", binary=True) if printed else None
    if printed is None or exact is None:
        return None
    kind = role_of_name(line.prefix.actor)
    if kind not in (None, "actor", "critic"):
        return None
    name = "log.critic_allocated_after_init" if kind == "critic" else "log.allocated_after_init"
    start = page.excerpt.raw.rfind(b"MA ", 0, at)
    return Fact(
        name,
        Size(exact.low, exact.high, exact.bytes, f"{printed[1]} GB"),
        "log",
        page.witness(page.excerpt.offset + max(start, page.bounds(index)[0])),
    )


def _lines_above(page: Page, index: int) -> Iterator[str]:
    """The few lines above, of the same process."""
    line = page.line(index)
    for number in range(index - 1, max(-1, index - 4), -1):
        above = page.line(number)
        if above.prefix.actor == line.prefix.actor and above.prefix.pid == line.prefix.pid:
            yield above.text


def world_from_banner(by_name: Mapping[str, Fact]) -> Iterator[Fact]:
    """The number of processes implied by the Trainer's banner, where nothing states it."""
    rows = [by_name.get(name) for name in ("train.global_batch", "train.micro_batch_size", "train.gradient_accumulation")]
    everything, micro, steps = (fact.value if fact is not None and isinstance(fact.value, int) else 0 for fact in rows)
    if rows[0] is not None and micro and steps and everything % (micro * steps) == 0:
        yield Fact("parallel.world", everything // (micro * steps), "log", rows[0].witness)
