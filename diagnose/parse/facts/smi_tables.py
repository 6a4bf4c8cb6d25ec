"""Tables of nvidia-smi (plain, csv, -q), gpustat, rocm-smi, amd-smi and npu-smi: what each card holds, and which processes use it."""

from __future__ import annotations

import re
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from diagnose import rule_files
from diagnose.facts import Fact, Value
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.records import NamedTuple
from diagnose.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from diagnose.facts import Witness
    from diagnose.parse.text.lines import Page

MOST = 256  # rows of each kind that are read in one excerpt
SERIES = 4096  # rows of tables that tools print again and again, and rows below one header
HEADERS = 64  # headers of such tables
PATIENCE = 64  # lines of others between two rows
CARDS = 16  # cards of one machine
TABLE = 24 << 10  # bytes that the rows of one table stand within

_QUERY = lazy_compile(rb"FB Memory Usage\s{0,8}\n((?:[ \t]{4,40}[A-Z]\w{1,20}[ \t]{1,60}: [^\n]{1,40}\n){1,6})")
_FIGURE = lazy_compile(rb"(Total|Used)[ \t]{1,60}: (\d{1,9}) MiB")
_APP = (
    rb"\| {1,8}(?P<index>\d{1,3}) {1,8}(?:\S{1,8} {1,8}\S{1,8} {1,16})?(?P<pid>\d{1,9}) {1,8}[CGM+]{1,5} {1,8}"
    rb"(?P<name>\S[^|\n]{0,120}?) {1,80}(?:\d{1,9}MiB|N/A) {1,4}\|"
)
_MIG = rb"\| {1,4}\d{1,3} {1,6}\d{1,3} {1,6}\d{1,3} {1,6}\d{1,3} {1,4}\| {1,12}\d{1,8}MiB / {1,8}(?P<total>\d{1,8})MiB"


class Card(NamedTuple):
    """A card of a table: index, memory in use, capacity, and the place in the log."""

    page: Page
    at: int
    number: int
    name: str
    used: Size | None
    total: Size | None

    @property
    def offset(self) -> int:
        return self.page.excerpt.offset + self.at


def facts(pages: Sequence[Page], source: str, end: int | None, gpu: int | None) -> Iterator[Fact]:
    """What the last table before the failure says of the cards; in inputs without the failure, the last table."""
    for page in reversed(pages):
        stop = len(page.excerpt.raw) if end is None or page.source != source else max(0, end - page.excerpt.offset)
        cards = _last_table(card_rows(page, stop))
        if cards:
            yield from _card_facts(cards, gpu, _is_renumbered(pages))
            break
    for page in reversed(pages):
        stop = len(page.excerpt.raw) if end is None or page.source != source else max(0, end - page.excerpt.offset)
        processes = list(_processes(page, stop))
        if processes:
            yield from processes
            break
    yield from _is_sliced(pages)


# -- rows


@cache
def _pattern(text: bytes) -> re.Pattern[bytes]:
    """Compiled on use: few logs hold such a table."""
    return re.compile(text)


def card_rows(page: Page, stop: int) -> list[Card]:
    """Every row of every table of cards in a page, in order."""
    raw = page.excerpt.raw
    cards: list[Card] = []
    for row in rule_files.table("card_tables"):
        if raw.find(row["says"].encode(), 0, stop) >= 0:
            rows = islice(_pattern(row["pattern"].encode()).finditer(raw, 0, stop), SERIES)
            cards += (_card(page, match, row["unit"]) for match in rows)
    cards += [*_csv(page, stop), *_dmon(page, stop), *_query(page, stop)]
    return sorted(cards, key=lambda card: card.at)


def _card(page: Page, match: re.Match[bytes], unit: str) -> Card:
    groups = match.groupdict()
    used, total = (Size.printed(groups[name].decode(), unit) if groups.get(name) else None for name in ("used", "total"))
    place = match.start("used") if groups.get("used") else match.start("total")
    return Card(page, place, int(match["index"]), (groups.get("name") or b"").decode("utf-8", "replace").strip(), used, total)


def _csv(page: Page, stop: int) -> Iterator[Card]:
    """Cards below a csv header that names the columns. Where no column is the index, the rows of one time stamp, else adjacent rows, are
    numbered; more than a machine has cards are one card over time."""
    raw, at = page.excerpt.raw, 0
    for _ in range(HEADERS):
        places = [place for place in (raw.find(b"memory.total", at, stop), raw.find(b"memory.used", at, stop)) if place >= 0]
        if not places:
            return
        index = page.index(page.excerpt.offset + min(places))
        columns = [column.split(" ")[0] for column in page.line(index).text.strip().split(", ")]
        rows = list(_csv_rows(page, columns, page.bounds(index)[1] + 1, stop))
        at = rows[-1][0] if rows else page.bounds(index)[1] + 1
        is_one = max((number for _, number, _ in rows), default=0) >= CARDS
        for place, number, row in rows:
            used, total = (_mebibytes(row.get(name, "")) for name in ("memory.used", "memory.total"))
            written = row.get("index", "")
            own = int(written) if written.isdecimal() and len(written) < 4 else 0 if is_one else number
            yield Card(page, place, own, row.get("name") or row.get("gpu_name") or "", used, total)


def _csv_rows(page: Page, columns: Sequence[str], at: int, stop: int) -> Iterator[tuple[int, int, dict[str, str]]]:
    """(place, number in its run or among those of one second, cells by column) of the rows below a header, with lines of others
    between them."""
    raw, number, missed, second = page.excerpt.raw, -1, 0, ""
    for _ in range(SERIES):
        if at >= stop or missed > PATIENCE:
            return
        line_end = raw.find(b"\n", at)
        line_end = len(raw) if line_end < 0 else line_end
        cells = page.line(page.index(page.excerpt.offset + at)).text.strip().split(", ")
        row = dict(zip(columns, cells, strict=False))
        if len(cells) == len(columns) and any(
            _mebibytes(row.get(name, "")) or row.get(name) == "[N/A]" for name in ("memory.used", "memory.total")
        ):
            stamp = row.get("timestamp", "").partition(".")[0]
            number = number + 1 if number >= 0 and not missed and stamp == second else 0
            missed, second = 0, stamp
            yield at, number, row
        else:
            missed += 1
            number = -1
            if b"memory.used" in raw[at:line_end] or b"memory.total" in raw[at:line_end]:
                return
        at = line_end + 1


def _dmon(page: Page, stop: int) -> Iterator[Card]:
    """nvidia-smi dmon: columns under a header that names them, `fb` in MB."""
    raw, at = page.excerpt.raw, 0
    for _ in range(HEADERS):
        at = raw.find(b"# gpu ", at, stop)
        if at < 0:
            return
        line_end = raw.find(b"\n", at, stop)
        columns = raw[at : max(at, line_end)].split()[1:]
        at += 1
        if b"fb" not in columns or b"pid" in columns:
            continue
        fb = columns.index(b"fb")
        for match in islice(_pattern(rb"(?m)^ {2,8}(\d{1,3})((?: {1,12}[\d.-]{1,12}){1,24}) {0,8}\r?$").finditer(raw, at, stop), SERIES):
            cells = match[2].split()
            if len(cells) == len(columns) - 1 and fb and cells[fb - 1].isdigit():
                yield Card(page, match.start(1), int(match[1]), "", Size.printed(cells[fb - 1].decode(), "MiB"), None)
        return


def _mebibytes(cell: str) -> Size | None:
    match = re.fullmatch(r"(\d{1,9})(?: MiB)?", cell.strip())
    return Size.printed(match[1], "MiB") if match else None


def _query(page: Page, stop: int) -> Iterator[Card]:
    """nvidia-smi -q: a block for each card. The block of BAR1 is no memory of the card."""
    for number, block in enumerate(islice(_QUERY.finditer(page.excerpt.raw, 0, stop), SERIES)):
        figures = {name: Size.printed(figure.decode(), "MiB") for name, figure in _FIGURE.findall(block[1])}
        yield Card(page, block.start(), number, "", figures.get(b"Used"), figures.get(b"Total"))


def _last_table(cards: Sequence[Card]) -> list[Card]:
    """The cards of the last table: each once, and close to each other. What two rows say of one card is combined."""
    table: dict[int, Card] = {}
    for card in reversed(cards):
        known_card = table.get(card.number)
        if cards[-1].at - card.at > TABLE or (known_card is not None and (known_card.used is None) == (card.used is None)):
            break
        table[card.number] = (
            card if known_card is None else known_card._replace(used=known_card.used or card.used, total=known_card.total or card.total)
        )
    return sorted(table.values(), key=lambda card: card.number)


# -- facts


def _card_facts(cards: Sequence[Card], gpu: int | None, renumbered: bool) -> Iterator[Fact]:
    def fact(name: str, value: Value, card: Card) -> Fact:
        return Fact(name, value, "log", card.page.witness(card.offset))

    first = cards[0]
    names = {card.name for card in cards}
    if len(names) == 1 and first.name and not first.name.endswith(".."):
        yield fact("hardware.gpu", first.name, first)
    yield fact("hardware.count", len(cards), cards[-1])
    mine = next((card for card in cards if card.number == gpu and not renumbered), first if len(cards) == 1 else None)
    totals = {card.total.bytes for card in cards if card.total is not None}
    if first.total is not None and len(totals) == 1:
        yield fact("hardware.nominal", (mine or first).total, mine or first)
    if mine is not None and mine.used is not None:
        yield fact("log.card_used", mine.used, mine)
    if all(card.used is not None for card in cards):
        yield fact("log.cards_used", ", ".join(f"{card.number}: {card.used}" for card in cards[:64]), first)


def _is_renumbered(pages: Iterable[Page]) -> bool:
    """Whether the job may number cards differently from the tool: CUDA_VISIBLE_DEVICES hides some."""
    return any(re.search(rb"(?:CUDA|HIP|ASCEND_RT)_VISIBLE_DEVICES['\"]?[=:]", page.excerpt.raw) for page in pages)


def _processes(page: Page, stop: int) -> Iterator[Fact]:
    """Number of processes on the most crowded card; a process on two cards has opened a context on a foreign one."""
    raw = page.excerpt.raw
    if raw.find(b"GPU Memory |", 0, stop) < 0 and raw.find(b"Process name", 0, stop) < 0:
        return
    cards: dict[bytes, list[tuple[int, int]]] = {}
    for match in islice(_pattern(_APP).finditer(raw, 0, stop), MOST):
        cards.setdefault(match["index"], []).append((int(match["pid"]), match.start()))
    if not cards:
        return
    listed = [pid for rows in cards.values() for pid in {pid for pid, _ in rows}]
    yield Fact("log.strays", len({pid for pid in listed if listed.count(pid) > 1}), "log", _at(page, next(iter(cards.values()))[0][1]))
    crowded = max(cards.values(), key=len)
    if len(crowded) > 1:
        yield Fact("log.processes_on_card", len(crowded), "log", _at(page, crowded[-1][1]))


def _is_sliced(pages: Iterable[Page]) -> Iterator[Fact]:
    """Whether the card is partitioned (MIG): a process then has only its slice's memory."""
    for page in pages:
        match = _pattern(_MIG).search(page.excerpt.raw) if b"MIG" in page.excerpt.raw else None
        named = re.search(rb"\n {2,4}MIG (\d{1,2}g\.\d{1,3}gb) {1,8}Device", page.excerpt.raw) if match is None else None
        slice_match = match or named
        if slice_match is not None:
            yield Fact("hardware.sliced", True, "log", _at(page, slice_match.start() + (named is not None)))
            return


def _at(page: Page, index: int) -> Witness:
    return page.witness(page.excerpt.offset + index)
