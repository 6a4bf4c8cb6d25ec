"""Record what the published packages declare into rules/declared, which the gate of our edits asks.

    python benchmarks/edits/record.py [FRAMEWORK...]

Of each release and entry point of packages.yaml: which of the keys that our tables know are declared. Keys with the same columns
share a row.
"""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from edits.packages import ROOT, is_recorded, listed
from edits.tables import all_declared

from diagnose.adapters.schema import framework_tables
from diagnose.word_conditions import word_of

FOLDER = ROOT / "rules" / "declared"


def spans(numbers: list[int]) -> str:
    """`0-3 7` of the numbers 0, 1, 2, 3, 7."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return " ".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)


def record(name: str) -> str:
    table, columns, found = framework_tables.table(name), list[str](), dict[str, list[int]]()
    defaults: dict[str, set[str]] = {}
    dashes: dict[str, set[bool | None]] = {}
    names = {key.replace("-", "_") for key in table.known if not key[:1].isupper()} | {key.key for key in table.keys if key.key}
    for release, entry, said, _ in all_declared(name):
        if not said.options:
            continue
        for key in names:
            option = said.find(key)
            if option is not None:
                found.setdefault(key, []).append(len(columns))
                dashes.setdefault(key, set()).add(option.dashes)
                defaults.setdefault(key, set()).add(word_of(option.default) if isinstance(option.default, (bool, int, float, str)) else "")
        columns.append(f'["{release}", {entry}]')
    rows: dict[str, list[str]] = {}
    for key, numbers in found.items():
        rows.setdefault(spans(numbers), []).append(key)
    lines = [
        f"# What the published releases of {listed()[name].get('package', name)} declare at these entry points, of keys we know.",
        "# Written by benchmarks/edits/record.py; `in`: the columns that declare the names.",
        "columns:",
        *(f"  - {column}" for column in columns),
        "rows:",
    ]
    for place, keys in sorted(rows.items(), key=lambda row: (-len(row[1]), row[0])):
        lines.append(f'  - in: "{place}"')
        lines.append("    names: >-")
        lines += textwrap.wrap(" ".join(sorted(keys)), 140, initial_indent="      ", subsequent_indent="      ", break_on_hyphens=False)
    written = {key.key for key in table.keys} | {need.key for key in table.keys for need in key.needs}
    for word, heading in ((True, "dashed"), (False, "underscored")):
        spelled = sorted(key for key, words in dashes.items() if words == {word} and key in written)
        if spelled:
            lines += [f"# Options that take no other spelling.\n{heading}: >-"]
            lines += textwrap.wrap(" ".join(spelled), 140, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
    turned = {key.key for key in table.keys if key.addable}
    same = {key: next(iter(words)) for key, words in sorted(defaults.items()) if len(words) == 1 and key in turned}
    shown = [f"  {key}: {json.dumps(word)}" for key, word in same.items() if word]
    return (
        "\n".join([*lines, "# Defaults that all columns share, of the keys that turn a knob.", "defaults:", *shown] if shown else lines)
        + "\n"
    )


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for framework in sys.argv[1:] or [name for name, entry in listed().items() if is_recorded(name, str(entry["releases"][-1]))]:
        Path(FOLDER / f"{framework}.yaml").write_text(record(framework))
        print(framework)
