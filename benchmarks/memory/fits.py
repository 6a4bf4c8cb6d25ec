"""Whether jobs fit their card, against published facts: python benchmarks/memory/fits.py FACTS... [--list]

FACTS are files of rows (README.md says their form) with `fits: true` or `fits: false` in place of a figure: out-of-memory cells of tables,
reports that ran. The answer is the verdict that `oomdoctor check` gives: yes and likely say that the job fits, unlikely and no that it
does not, and what is refused or unknown is no answer. Printed: of the jobs that are said to fit how many do (precision), of those that do
how many are found among all that have an answer (recall), the same for those that do not fit, and the share without an answer.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from memory.rows import Refused, Row, as_its_source_says, check, read
from memory.score import rows_of

from diagnose.budget.moments import role_ledgers
from diagnose.plan.pricing import fit
from diagnose.units import Size

FITTING, EXCEEDING = ("yes", "likely"), ("unlikely", "no")


#: Sources that no card ran: lines of reserved memory over length, drawn up to the nominal size of a card (so begins their `source`).
DRAWN_TO_NOMINAL = ("unsloth README, context length benchmarks",)


class Judged(NamedTuple):
    """A fact and the program's word: yes, likely, unlikely, no, or "" with the reason."""

    row: Row
    word: str
    reason: str = ""

    @property
    def truth(self) -> bool:
        return bool(self.row["fits"])

    @property
    def answer(self) -> bool | None:
        return True if self.word in FITTING else False if self.word in EXCEEDING else None


def judge(row: Row) -> Judged:
    """The likeliest reading's verdict on the role that fits worst. Never raises: what goes wrong is no answer."""
    try:
        check(row)
        ledgers = role_ledgers.ledgers(read(row, open_ended=True).books[0])
    except Refused as reason:
        return Judged(row, "", str(reason))
    except Exception as trouble:
        return Judged(row, "", f"the program failed: {type(trouble).__name__}: {trouble}"[:160])
    if str(row.get("source") or "").startswith(DRAWN_TO_NOMINAL):
        ledgers = tuple(replace(ledger, usable=_nominal(row) or ledger.usable) for ledger in ledgers)
    word = fit.sits(fit.foremost(ledgers))
    return Judged(row, word, "" if word != "unknown" else "the ledger is not complete, or the card is unknown")


def _nominal(row: Row) -> Size | None:
    """The size that the card's name states, which such a table takes for what a process may reserve."""
    stated = re.search(r"(\d+) ?GB", str(row.get("gpu") or ""))
    return Size.exactly(int(stated[1]) * 2**30) if stated else None


def text(judged: Sequence[Judged]) -> str:
    answered = [one for one in judged if one.answer is not None]
    lines = [f"{len(judged)} facts, {sum(one.truth for one in judged)} of them fit", ""]
    for name, truth in (("fits", True), ("does not fit", False)):
        said = [one for one in answered if one.answer is truth]
        are = [one for one in answered if one.truth is truth]
        right = sum(one.truth is truth for one in said)
        lines.append(f"{name:14} precision {_share(right, len(said))}   recall {_share(right, len(are))}")
    lines.append(f"{'unanswered':14} {_share(len(judged) - len(answered), len(judged))}")
    reasons = Counter(one.reason for one in judged if one.answer is None)
    return "\n".join([*lines, *(f"{count:6}  {reason}" for reason, count in reasons.most_common())])


def _share(part: int, whole: int) -> str:
    return f"{part:3} of {whole:3} = {100 * part / whole:5.1f}%" if whole else "    -"


def main(arguments: Iterable[str] | None = None) -> int:
    asked = argparse.ArgumentParser(description="judges published facts of what fits a card")
    asked.add_argument("facts", nargs="+", type=Path, metavar="FACTS", help="files or folders of facts")
    asked.add_argument("--list", action="store_true", help="show every fact that is judged wrongly")
    options = asked.parse_args(None if arguments is None else list(arguments))
    rows = [as_its_source_says(row) for path in options.facts for row in rows_of(path) if isinstance(row.get("fits"), bool)]
    judged = [judge(row) for row in rows]
    print(text(judged))
    if options.list:
        for one in judged:
            if one.answer is not None and one.answer is not one.truth:
                print(
                    f"{one.row.get('id')}: {one.word} where the truth is {'fits' if one.truth else 'does not fit'}: {one.row.get('source')}"
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
