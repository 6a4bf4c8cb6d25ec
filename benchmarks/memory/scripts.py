"""Published configurations, read as `oomdoctor check` reads them, against the peaks stated beside them.

    python benchmarks/memory/scripts.py [PUBLISHED] [--list]

PUBLISHED (scripts/published.yaml) names a script per row, with its card and its figure; everything else is what the program reads from the
script and knows of the framework's defaults.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]

from memory import tally  # noqa: E402 - found by the line above
from memory.predict import Prediction, one  # noqa: E402
from memory.rows import Refused, Row  # noqa: E402
from memory.score import quietly, rows_of  # noqa: E402
from memory.tally import Scored  # noqa: E402

from diagnose import pipeline  # noqa: E402
from diagnose.facts import FactBook  # noqa: E402

PUBLISHED = Path(__file__).with_name("scripts") / "published.yaml"


def measured(row: Row, folder: Path) -> Scored:
    """The row with the settings that decide how its figure is compared, as its script has them, and what the program says of it."""
    found = pipeline.check([folder / row["script"]], gpu=row["gpu"], gpus=row["gpus"], frontier=False)
    book = FactBook(found.facts)
    software = {"framework": book.word("train.framework"), "framework_version": book.version(f"version.{book.word('train.framework')}")}
    whole = {**row, "software": software, "knobs": {"script": row["script"], "train.packing": book.switch("train.packing")}}
    try:
        return Scored(whole, one(whole, book, found.ledgers[0]))
    except Refused as reason:
        return Scored(whole, Prediction(refused=str(reason)))


def main(arguments: list[str] | None = None) -> int:
    asked = argparse.ArgumentParser(description="scores the memory ledger on published configurations")
    asked.add_argument("published", nargs="?", type=Path, default=PUBLISHED, metavar="PUBLISHED")
    asked.add_argument("--list", action="store_true", help="show every script with both figures")
    options = asked.parse_args(arguments)
    scored = [measured(row, options.published.parent) for row in rows_of(options.published)]
    print(tally.text(scored))
    for each in scored if options.list else ():
        found, peak = each.made, each.row["measured_gib"]
        said = found.refused or f"{found.bytes / 2**30:.2f} of {peak:.2f} GiB at {found.peak_moment}"
        print(f"{each.id} {each.row['script']}: {said}")
    return 0


if __name__ == "__main__":
    sys.exit(quietly(main=main))
