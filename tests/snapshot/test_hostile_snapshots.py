"""Snapshots made to cost time or memory, or to crash: a result or one sentence, within 3 s and 400 MB."""

from __future__ import annotations

import random
import subprocess
import sys

from collected import for_each
from hostile_snapshots import made_by_hand, mutated
from pace import within
from snapshots_made import PEAK
from sweep import examples

from diagnose.errors import UserError
from diagnose.pipeline import explain
from diagnose.render.formats import RENDERERS
from diagnose.render.parts.view import View
from diagnose.scan.source import Source

#: Seconds of processor time: three times what is promised, for a machine that is slow.
PATIENCE = 9.0


def check(data: bytes) -> None:
    """In time, and in every format or with one sentence that refuses it."""
    with within(PATIENCE):
        try:
            diagnosis = explain(snapshot=Source.text(data, "s.pickle"))
        except UserError as error:
            text = f"{error.to('en')}|{error.to('zh')}"
            is_sentence = "\n" not in text
        else:
            text = "".join(render(diagnosis, "en", View(verbose=True, budget=True)) for render in RENDERERS.values())
            is_sentence = True
    assert text.encode() and is_sentence


@for_each("name", made_by_hand(0))
def test_every_mechanism_ends(name: str) -> None:
    check(made_by_hand(100_000)[name])


@for_each("seed", range(examples(300)))
def test_a_mutated_snapshot_ends(seed: int) -> None:
    check(mutated(random.Random(seed)))


def test_memory_is_bounded() -> None:
    """Each in turn in one process, whose largest size is the largest of any."""
    code = (
        f"import sys\n{PEAK}"
        "from hostile_snapshots import made_by_hand\n"
        "from diagnose.errors import UserError\n"
        "from diagnose.scan.source import Source\n"
        "from diagnose.snapshot.snapshot_reader import read\n"
        "for data in made_by_hand(1_000_000).values():\n"
        "    try: read(Source.text(data))\n"
        "    except UserError: pass\n"
        "print(peak())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env={"PYTHONPATH": ":".join(sys.path)})
    assert int(done.stdout) < 600, "400 MB, and the pickles themselves"
