"""Writes tests/fingerprints.json, the fingerprints of the corpus: `python tests/fingerprints.py`, after reading what would change.

A line that changes because its case is diagnosed otherwise is fine. One whose parts are the same and whose fingerprint is not, or whose
parts are taken otherwise from the same diagnosis, breaks every database there is: that needs a new version in rules/fingerprint.yaml.
"""

from __future__ import annotations

import json
from pathlib import Path

from cases import diagnosed, folders

from diagnose.cluster.store import group_fingerprint

TABLE = Path(__file__).with_name("fingerprints.json")


def now() -> dict[str, dict[str, str]]:
    """The fingerprint and its parts for every failure of the corpus."""
    found = {}
    for case in folders():
        parts = group_fingerprint.parts(diagnosed(case))
        if parts is not None:
            found[case] = {"fingerprint": group_fingerprint.name(parts), **parts._asdict()}
    return found


if __name__ == "__main__":
    TABLE.write_text(json.dumps(now(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
