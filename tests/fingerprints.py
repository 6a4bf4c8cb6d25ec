"""Writes tests/fingerprints.json, the fingerprints of the corpus: `python tests/fingerprints.py`, after reading what would change.

A line that changes because its case is diagnosed otherwise is fine. One whose parts are the same and whose fingerprint is not, or whose
parts are taken otherwise from the same diagnosis, breaks every database there is: that needs a new version in rules/fingerprint.yaml.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from cases import diagnosed, folders

from diagnose.cluster.store import group_fingerprint
from diagnose.diagnosis import Diagnosis

TABLE = Path(__file__).with_name("fingerprints.json")


@cache
def golden() -> dict[str, dict[str, str]]:
    """The fingerprint and its parts for every failure of the corpus, as they were committed."""
    committed: dict[str, dict[str, str]] = json.loads(TABLE.read_text(encoding="utf-8"))
    return committed


def fingerprint_of(diagnosis: Diagnosis) -> dict[str, str] | None:
    """The same of one diagnosis; None where nothing failed."""
    parts = group_fingerprint.parts(diagnosis)
    return None if parts is None else {"fingerprint": group_fingerprint.name(parts), **parts._asdict()}


if __name__ == "__main__":
    now = {case: found for case in folders() if (found := fingerprint_of(diagnosed(case))) is not None}
    TABLE.write_text(json.dumps(now, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
