"""Which failures are one mistake: a short name made of what stays the same when it is repeated.

Lines, paths, processes, ranks, steps and sizes are no part of it. rules/fingerprint.yaml is its other half; both are held to a table of
real failures (tests/fingerprints.json), and what would change that is a new version.
"""

from __future__ import annotations

import json
import re
from functools import cache
from hashlib import sha256
from typing import Any

from diagnose import rule_files
from diagnose.diagnosis import Diagnosis
from diagnose.facts import FactBook
from diagnose.parse.model.event import Frame
from diagnose.record import NamedTuple

#: Functions that Python makes itself: the place is that of the function round them, whose frame stands above.
UNNAMED = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<lambda>")

#: Code that was typed into a notebook, whose number is another in every session.
NOTEBOOK = re.compile(r"<ipython-input|\b(?:Cell|Input) In\b|^In ?\[|ipykernel")

#: Numbers and hashes in a file's name: of a run, a process, a day.
PASSING = re.compile(r"[0-9a-f]{8,}|\d{4,}", re.IGNORECASE)

#: Where Python keeps its own modules: lib/python3.11, Python311/Lib.
PYTHON = re.compile(r"(?:^|/)(?:lib(?:64)?/python\d[\d.]*|Python\d+/Lib)(?:/|$)")

#: Longer names are cut: a name is there to be compared.
LONGEST = 80


class Parts(NamedTuple):
    """What a fingerprint is made of; an empty part is unknown. `tensor` is a key of rules/phrases/ledger.yaml or of rules/tensors.yaml,
    `knobs` NAME=VALUE of the knobs that rules/fingerprint.yaml lists for the cause, parted by commas."""

    family: str
    phase: str
    frame: str  # file:function, the innermost in user code
    tensor: str
    cause: str
    rule: str  # the rule that found the cause, where the cause alone says little
    knobs: str

    def as_json(self) -> str:
        """The parts by name, as a database keeps them."""
        return json.dumps(self._asdict(), ensure_ascii=False)


class Alike(NamedTuple):
    """How far two mistakes are one: the parts that both have, and those in which they differ."""

    same: tuple[str, ...]
    other: tuple[str, ...]

    @property
    def similarity(self) -> float:
        """Parts in common as a share of the parts that either of them has."""
        told = len(self.same) + len(self.other)
        return len(self.same) / told if told else 0.0


#: Two groups are suggested for merging at this similarity, where they have a cause and the phase is the same.
NEAR = 0.7


def version() -> int:
    """The version that a fingerprint begins with."""
    return int(rule_files.table("fingerprint")["version"])


def fingerprint(diagnosis: Diagnosis) -> str:
    """VERSION:HASH of the mistake; empty for what did not fail of memory."""
    found = parts(diagnosis)
    return "" if found is None else name(found)


def name(found: Parts) -> str:
    """The fingerprint of some parts."""
    return f"{version()}:{sha256(chr(31).join(found).encode(errors='replace')).hexdigest()[:16]}"


def parts(diagnosis: Diagnosis) -> Parts | None:
    """What the fingerprint of a failure is made of; None for what did not fail of memory."""
    root = diagnosis.root
    if root is None or diagnosis.verdict.status not in ("oom", "suspected"):
        return None
    phase = diagnosis.verdict.phase or ""
    return Parts(
        family=diagnosis.verdict.family or "",
        phase="" if phase == "unknown" else phase,
        frame=place(user_frame(root.frames)),
        tensor=tensor(diagnosis),
        cause=cause(diagnosis),
        rule=rule(diagnosis),
        knobs=knobs(diagnosis),
    )


def cause(diagnosis: Diagnosis) -> str:
    """The first cause; empty where none was found."""
    return next((ruling.cause for ruling in diagnosis.judgement.causes), "")


def rule(diagnosis: Diagnosis) -> str:
    """The rule that found the first cause, where quite different mistakes have that cause; empty elsewhere."""
    first = next(iter(diagnosis.judgement.causes), None)
    return first.rule if first is not None and first.cause in rule_files.table("fingerprint")["rules"] else ""


def tensor(diagnosis: Diagnosis) -> str:
    """The tensor that the failed request was, where the log bears it out; a mere coincidence of sizes names nothing."""
    claim = next((each for each in diagnosis.attributions if each.event == diagnosis.verdict.event), None)
    return claim.key if claim is not None and claim.agrees and (claim.exact or claim.at_least) else ""


def knobs(diagnosis: Diagnosis) -> str:
    """The knobs that matter for the first cause, as they were in effect; those unknown are left out."""
    wanted = rule_files.table("fingerprint")["knobs"].get(cause(diagnosis))
    if not wanted:
        return ""
    book = FactBook(fact for fact in diagnosis.facts if fact.name in wanted)
    said = {name: _word(book.value(name)) for name in wanted}
    return ",".join(f"{name}={value}" for name, value in said.items() if value)


def _word(value: object) -> str:
    """A knob's value as a word; an offset, a model or a size is none. What is not in use is as if nobody had named it: a job whose config
    was found made no other mistake than one whose config was not."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value) if isinstance(value, (str, int)) and value != "none" else ""


# -- the place in user code


def user_frame(frames: tuple[Frame, ...]) -> Frame | None:
    """The innermost frame that the user wrote; None where the traceback shows only installed packages."""
    return next((frame for frame in reversed(frames) if frame.function not in UNNAMED and written_by_user(frame.file)), None)


@cache
def _installed() -> tuple[frozenset[str], frozenset[str]]:
    table = rule_files.table("fingerprint")
    return frozenset(table["installed"]), frozenset(table["libraries"])


def written_by_user(file: str) -> bool:
    """Whether a file is neither of an installed package, nor of Python, nor of a checkout of a known library."""
    *folders, last = file.replace("\\", "/").split("/")
    if not last or (last.startswith("<") and not NOTEBOOK.search(file)):  # <frozen importlib>, <string>, <eval_with_key>
        return False
    installed, libraries = _installed()
    if any(folder in installed for folder in folders) or PYTHON.search("/".join(folders)):
        return False
    for at, folder in enumerate(folders):
        inside = at + 1 < len(folders) or folders[at - 1 : at] == ["src"]  # /home/me/trl/train.py is mine, trl/trainer/x.py is not
        if folder in libraries and inside:
            return False
    return True


def place(frame: Frame | None) -> str:
    """file:function without folders, lines, and numbers that another run would not have."""
    if frame is None:
        return ""
    if NOTEBOOK.search(frame.file):
        return f"notebook:{frame.function}"[:LONGEST]
    last = frame.file.replace("\\", "/").rpartition("/")[2]
    stem, dot, suffix = last.rpartition(".")
    known = PASSING.sub("#", stem if dot else last)
    known = "#" if known.isdigit() else known
    return f"{known}{dot}{suffix if dot else ''}:{frame.function}"[:LONGEST]


# -- groups that may be one


def alike(one: Parts, other: Parts) -> Alike:
    """The parts in which two mistakes agree and differ; what neither knows says nothing."""
    pairs = [(key, mine, theirs) for key, mine, theirs in zip(Parts._fields, one, other, strict=True) if mine or theirs]
    return Alike(
        tuple(key for key, mine, theirs in pairs if mine == theirs),
        tuple(key for key, mine, theirs in pairs if mine != theirs),
    )


def near(one: Parts, other: Parts) -> Alike | None:
    """Why two groups may be one mistake; None where they are not near. Never merged by itself: a person decides."""
    found = alike(one, other)
    return found if "cause" in found.same and "phase" not in found.other and found.similarity >= NEAR else None


def read(text: str) -> Parts:
    """Parts as a database keeps them; a part that it does not know is unknown."""
    held: Any = json.loads(text)
    return Parts(*(str(held.get(key) or "") for key in Parts._fields))
