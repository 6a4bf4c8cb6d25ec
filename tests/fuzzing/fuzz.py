"""Coverage-guided fuzzing of everything that reads: arbitrary bytes never raise, and take bounded time.

    pip install atheris
    python tests/fuzzing/fuzz.py WORKFOLDER -max_total_time=3600 -max_len=20000 -timeout=10

WORKFOLDER keeps what was found worth trying; it is filled with the logs of the corpus first. Not part of `make test`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

with atheris.instrument_imports(include=["diagnose"]):
    from diagnose import explain
    from diagnose.errors import UserError
    from diagnose.parse import log_reader
    from diagnose.scan.log_scan import scan
    from diagnose.scan.source import Source


def one_input(data: bytes) -> None:
    """The first byte says what the rest is: a log to be read, or diagnosed; a config and a log; a config beside a short log."""
    if not data:
        return
    kind, text = data[0] % 4, data[1:]
    log, config = text, None
    if kind == 3:
        log_reader.read_logs([scan(Source.text(text))])
        return
    if kind == 1:
        config, _, log = text.partition(b"\x00\x00")
    elif kind == 2:
        log, config = b"RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n", text
    try:
        report = explain(log, configs=[config] if config else [])
    except UserError:
        return
    report.to_dict("en")
    report.to_markdown(lang="zh")


def seeds(folder: Path) -> None:
    """The corpus as first inputs."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, path in enumerate(sorted((ROOT / "corpus").rglob("*"))):
        if path.is_file() and path.name != "expected.yaml" and path.stat().st_size < 20_000:
            kind = b"\x03" if path.suffix in (".log", ".out", ".err", ".txt") else b"\x02"
            (folder / f"seed-{number}").write_bytes(kind + path.read_bytes())


if __name__ == "__main__":
    seeds(Path(sys.argv[1]))
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
