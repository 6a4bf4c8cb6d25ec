"""Settings that programs print as a whole (rules/dumps.yaml), cut out of the log with the place of each line."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from diagnose import rule_files
from diagnose.facts import declared
from diagnose.parse.events.log_events import role_of_name
from diagnose.parse.model.reading import Dump, Form
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.parse.text.lines import same_stream
from diagnose.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import TypedDict

    from diagnose.facts import Value, Witness
    from diagnose.parse.text.lines import Page

    #: A row of rules/dumps.yaml; `from` is no name of Python, so this is not written as a class.
    DumpRow = TypedDict(
        "DumpRow", {"says": str, "from": str, "form": Form, "items": bool, "framework": str, "beside": str, "effective": bool}, total=False
    )

REACH = 256 << 10  # bytes of a log's head in which programs print their settings
LONGEST = 3000  # lines of one dump
WIDEST = 128 << 10  # bytes of one line of a dump, characters of one dump
MOST = 4  # dumps that begin with the same words
PATIENCE = 60  # lines of others that may stand between two rows

#: An escaped character, or a text in quotes. An escaped quote begins no text: else a line of them alone is searched to its end from each.
_QUOTED = r"\\.|'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\""
_ROW = r"\s{1,12}(?:[A-Za-z_][\w.-]{0,80} ?\.{2,} ?|[A-Za-z_]\w{28,80}  )\S"  # a long key leaves no room for dots
#: What GPT-NeoX prints behind a value: where it is from.
_ORIGIN = lazy_compile(r"\.{2,}(?:default|updated)\s*$")
_YAML = r"\s*(?:- +)?[\w.$/-]{1,80} *:(?: |$)|\s*- "


class _Row(NamedTuple):
    """A line of a dump: its text, and the offset on the page at which it begins."""

    text: str
    at: int


def read_dumps(pages: Iterable[Page]) -> tuple[Dump, ...]:
    """The dumps in the heads of the logs, in the table's order; those of critics and reward models are left out."""
    return tuple(dump for page in pages if page.excerpt.offset < REACH for row in _rows_present(page) for dump in _dumps_of_page(row, page))


@cache
def _words() -> frozenset[bytes]:
    return frozenset(row["says"].encode() for row in rule_files.table("dumps"))


def _rows_present(page: Page) -> list[DumpRow]:
    """The table's rows whose words occur in a page."""
    words = page.excerpt.spots.among(_words())
    return [row for row in rule_files.table("dumps") if row["says"].encode() in words] if words else []


def _dumps_of_page(row: DumpRow, page: Page) -> Iterator[Dump]:
    literal, raw = row["says"].encode(), page.excerpt.raw
    at = raw.find(literal, 0, REACH)
    for _ in range(MOST):
        if at < 0:
            return
        dump = _cut_dump(row, page, at)
        if dump is not None:
            yield dump
        at = raw.find(literal, at + len(literal), REACH)


def _cut_dump(row: DumpRow, page: Page, at: int) -> Dump | None:
    raw = page.excerpt.raw
    index = page.index(page.excerpt.offset + at)
    line_start = raw[max(page.bounds(index)[0], at - 1000) : at]
    if row.get("beside", "").encode() not in line_start or re.search(rb"(?:raise|def|class|import)\s|[=.]\s?$", line_start[-80:]):
        return None
    if role_of_name(page.line(index).prefix.actor) not in (None, "actor"):
        return None
    begin = at + row["says"].find(row["from"]) if "from" in row else _word_start(raw, at)
    lines = _lines(page, begin)
    if row["form"] in ("values", "overrides"):
        rows = _balanced(lines)
    elif row["form"] == "rows":
        rows = _rows(lines)
    else:
        rows = _yaml(lines, bool(row.get("items")))
    if not rows:
        return None
    text = "\n".join(dumped_row.text for dumped_row in rows)
    return Dump(
        row["form"], row.get("framework", ""), text, tuple(_place(page, dumped_row) for dumped_row in rows), row.get("effective", True)
    )


def _word_start(raw: bytes, at: int) -> int:
    """Start of the word that ends with the words found: Seq2SeqTrainingArguments for TrainingArguments."""
    while at and (raw[at - 1 : at].isalnum() or raw[at - 1 : at] == b"_"):
        at -= 1
    return at


def _place(page: Page, row: _Row) -> Witness:
    return page.witness(page.excerpt.offset + row.at)


def _lines(page: Page, begin: int) -> Iterator[_Row]:
    """The page's text from an offset on, then the next lines of the same process."""
    raw = page.excerpt.raw
    first = page.index(page.excerpt.offset + begin)
    end = page.bounds(first)[1]
    yield _Row(raw[begin : min(end, begin + WIDEST)].decode("utf-8", "replace").rstrip("\r"), begin)
    prefix = page.line(first).prefix
    for index in range(first + 1, min(first + LONGEST, len(page))):
        line = page.line(index)
        if not same_stream(line.prefix, prefix):
            continue
        start, end = page.bounds(index)
        into = raw.find(line.text[:60].encode(), start, end) if line.text else start
        yield _Row(line.text.rstrip("\r"), into if into >= 0 else start)


def _balanced(lines: Iterator[_Row]) -> list[_Row]:
    """The lines up to the bracket that closes the first one; none if it is never closed, as in text mixed with another process's."""
    rows: list[_Row] = []
    depth = total = 0
    for row in lines:
        total += len(row.text)
        if total > WIDEST:
            return []
        bare = re.sub(_QUOTED, lambda quoted: "_" * len(quoted[0]), row.text)
        for bracket in re.finditer(r"[\[({]|[\])}]", bare):
            depth += 1 if bracket[0] in "[({" else -1
            if depth <= 0:
                return [*rows, row._replace(text=row.text[: bracket.end()])]
        rows.append(row)
    return []


def _rows(lines: Iterator[_Row]) -> list[_Row]:
    next(lines, None)
    rows: list[_Row] = []
    missed = 0
    for row in lines:
        if re.match(_ROW, row.text):
            rows.append(_Row(_ORIGIN.sub("", row.text), row.at))
            missed = 0
        elif (missed := missed + 1) > PATIENCE or "end of arguments" in row.text or row.text.strip() == "json = {":
            break
    return rows


def _yaml(lines: Iterator[_Row], items: bool) -> list[_Row]:
    next(lines, None)
    rows: list[_Row] = []
    for row in lines:
        if not row.text.strip() and not rows:
            continue
        text = re.sub(r"^\s*- ", "", row.text) if items else row.text
        if not re.match(_YAML, text) or (items and text == row.text):
            break
        shifted = len(row.text.encode()) - len(text.encode())
        rows.append(_Row(text, row.at + shifted))
    return rows


_DTYPES = {"float32": "fp32", "float": "fp32", "float16": "fp16", "half": "fp16", "bfloat16": "bf16"}
_QUOTED_VALUE = r"'([^'\n]{1,400})'|\"([^\"\n]{1,400})\""


def parse_arguments(text: str, keys: Mapping[str, str]) -> Iterator[tuple[str, Value]]:
    """(fact, value) for each key that is set; "None" and "auto" set nothing. `keys`: fact names by the program's names."""
    for key, name in keys.items():
        match = re.search(rf"(?<![\w.-])['\"]?{re.escape(key)}['\"]?\s?[=:]\s?(?:{_QUOTED_VALUE}|([\w./+-]{{1,200}}))", text)
        value = None if match is None else _parse_argument(name, next(group for group in match.groups() if group))
        if value is not None:
            yield name, value


def _parse_argument(name: str, text: str) -> Value:
    entry = declared(name)
    if entry is None or text in ("None", "auto", "null"):
        return None
    match entry.kind:
        case "count":
            return int(text) if re.fullmatch(r"[1-9]\d{0,14}", text) else None
        case "ratio":
            return float(text) if re.fullmatch(r"\d?\.\d{1,18}|1(?:\.0)?", text) else None
        case "switch":
            return {"True": True, "False": False, "true": True, "false": False}.get(text)
        case "word":
            word = _DTYPES.get(text.removeprefix("torch."), text)
            return word if word in entry.words else None
        case "text":
            return text
    return None
