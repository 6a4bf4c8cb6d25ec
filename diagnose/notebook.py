"""What a user noted of earlier answers: which remedy worked for which job, which failed. In a file of their own, which nothing sends."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Literal
from zlib import crc32

from diagnose import disk_cache, rule_files
from diagnose.facts import Fact, FactBook, Notice, Witness
from diagnose.parse.model.event import Event
from diagnose.phrases import Text, phrase
from diagnose.records import NamedTuple
from diagnose.units import Size

Result = Literal["worked", "failed"]

#: What is said of a remedy that was noted so.
FACTS: dict[Result, str] = {"worked": "report.helped", "failed": "report.tried"}

#: Facts that stay as they are while a user tries one remedy after the other on a job.
WHOSE = ("train.framework", "run.program", "train.stage", "model.total_params", "hardware.capacity")

JOB = re.compile(r"[0-9a-f]{8}")
DAY = re.compile(r"\d{4}-\d\d-\d\d")

#: Bytes of the file. When it would be longer, the older half goes: a server takes notes from whoever can reach it.
MOST = 1 << 18


class Note(NamedTuple):
    """One line of the notebook: what became of a remedy for a job, and on which day."""

    job: str
    remedy: str
    result: Result
    day: str


def job_id(book: FactBook, event: Event | None) -> str:
    """What names a job in its answers: equal while settings are tried, another for another model, program, method or kind of card. Where
    the model is not known, the failed request has to be the same."""
    known = [_word(book.value(name)) for name in WHOSE]
    if event is not None and book.value("model.total_params") is None:
        known += [event.family, str(event.requested), str(event.capacity), *(f"{frame.file}:{frame.function}" for frame in event.frames)]
    return f"{crc32(chr(10).join(known).encode(errors='replace')):08x}"  # the hashes of hashlib load OpenSSL at each start


def _word(value: object) -> str:
    """A value as a word; printed capacities of one kind of card differ by less than a GiB."""
    return str(round(value.bytes / 2**30)) if isinstance(value, Size) else str(value)


def facts(notes: Sequence[Note], job: str) -> list[Fact]:
    """What the notes say of a job; of a remedy the last one counts."""
    last = {note.remedy: note for note in notes if note.job == job}
    return [Fact(FACTS[note.result], note.remedy, "given", Witness("given", text=note.day)) for note in last.values()]


def notices(noted: Sequence[Fact]) -> list[Notice]:
    """These facts in one sentence."""
    result = {fact: name for name, fact in FACTS.items()}
    parts = [
        phrase(f"plan.noted_{result[fact.name]}", remedy=phrase(f"render.remedy_{fact.value}"), day=fact.witness.text) for fact in noted
    ]
    joined = Text(", ".join(part.en for part in parts), "，".join(part.zh for part in parts))
    return [Notice("info", "noted", phrase("plan.noted", what=joined))] if parts else []


# -- the file


def file() -> Path | None:
    """$XDG_DATA_HOME/oomdoctor/notes.jsonl; None where its folder is not this user's alone."""
    base = os.environ.get("XDG_DATA_HOME", "")
    root = Path(base) if base.startswith("/") else Path(os.path.expanduser("~")) / ".local" / "share"
    folder = disk_cache.own_folder(root, "oomdoctor") if hasattr(os, "getuid") else root / "oomdoctor"
    return None if folder is None else folder / "notes.jsonl"


def read() -> list[Note]:
    """All notes, oldest first. A line that is none is passed over."""
    kept = file()
    if kept is None:
        return []
    try:
        lines = kept.read_bytes()[-MOST:].splitlines()
    except OSError:
        return []
    notes: list[Note] = []
    for line in lines:
        with suppress(ValueError, TypeError):
            row = json.loads(line)
            notes += parsed([row["job"], row["remedy"], row["result"], row["day"]] if isinstance(row, dict) and len(row) == 4 else [])
    return notes


def parsed(row: Sequence[object]) -> list[Note]:
    """The note of these values; none where one of them is of another kind."""
    if len(row) != len(Note._fields) or not all(isinstance(value, str) for value in row):
        return []
    job, remedy, result, day = map(str, row)
    is_note = JOB.fullmatch(job) and DAY.fullmatch(day) and result in FACTS and remedy in remedies()
    return [Note(job, remedy, "worked" if result == "worked" else "failed", day)] if is_note else []


def write(job: str, words: Sequence[str], result: Result) -> Path | None:
    """Add notes of today; returns the file, None without a folder that is this user's alone. Raises OSError."""
    kept = file()
    if kept is None:
        return None
    kept.parent.mkdir(parents=True, exist_ok=True)
    today = date.today().isoformat()  # noqa: DTZ011 - the user's own day
    lines = "".join(json.dumps(Note(job, word, result, today)._asdict()) + "\n" for word in words)
    if kept.exists() and kept.stat().st_size > MOST:
        kept.write_bytes(kept.read_bytes()[-MOST // 2 :].partition(b"\n")[2])
    with os.fdopen(os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "w") as out:
        out.write(lines)
    return kept


def remedies() -> list[str]:
    """The words that a note may name."""
    return [word for words in rule_files.table("vocabulary")["remedy"].values() for word in words]
