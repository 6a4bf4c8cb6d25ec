"""A log that ends in the middle of a traceback: whoever asks about the job gets a next step, a search through many counts nothing."""

from __future__ import annotations

from collected import for_each

import diagnose
from diagnose.pipeline import read

SITE = "/opt/venv/lib/python3.11/site-packages/torch"
ADAM = f"""Traceback (most recent call last):
  File "/app/train.py", line 485, in main
    optimizer.step()
  File "{SITE}/optim/adam.py", line 237, in step
    has_complex = self._init_group(
  File "{SITE}/optim/adam.py", line 181, in _init_group
    state["exp_avg_sq"] = torch.zeros_like(
                          ^^^^^^^^^^^^^^^^^
"""
BOX = """\
│ /opt/venv/lib/python3.9/site-packages/bitsandbytes/nn/modules.py:            │
│ 268 in _save_to_state_dict                                                    │
│                                                                               │
│   267 │   │   │   if reorder_layout:                                          │
│ ❱ 268 │   │   │   │   self.weight.data = undo_layout(self.state.CxB, self.tile) │
│   269 │   │   │                                                               │
"""
#: Endings that say nothing of memory: an exception follows, a watchdog's stack, a launcher's traceback, no traceback at all.
OTHERS = (
    ADAM + "KeyboardInterrupt\n",
    ADAM + "ValueError: bad value\n",
    ADAM.replace("Traceback (most recent call last)", "Thread 0x00007f (most recent call first)"),
    f'Traceback (most recent call last):\n  File "{SITE}/distributed/run.py", line 794, in main\n    run(args)\n',
    'Traceback (most recent call last):\n  File "/app/a.py", line 3, in load\n    json.loads(text)\n',
    "step 12 loss 2.31\nstep 13 loss 2.30\n",
)


def test_a_cut_traceback_is_supposed_to_be_of_memory() -> None:
    """The frame where it ends decides what would help, and the answer says that nothing proves it."""
    found = diagnose.explain(ADAM)
    assert (found.verdict.status, found.verdict.phase) == ("suspected", "optimizer_step")
    assert "before its exception" in found.verdict.headline.en
    assert found.judgement.causes[0].cause == "optimizer_states"
    assert found.outcome.remedies


def test_a_search_through_many_logs_does_not_count_it() -> None:
    reading, _, _ = read([ADAM], healthy=True)
    assert not reading.events


@for_each("text", OTHERS)
def test_other_endings_are_left_alone(text: str) -> None:
    assert diagnose.explain(text).verdict.status == "none"


def test_a_box_that_wraps_its_path_is_read() -> None:
    """rich draws a traceback into a box, whose width cuts the path of a place from its line; a page has the box below its words."""
    for text in (BOX, f"# CUDA out of memory\n\nIt ends with\n\n```\n{BOX}```\n"):
        found = diagnose.explain(text)
        assert (found.verdict.status, found.verdict.phase) == ("suspected", "checkpoint_save")
        assert found.judgement.causes[0].cause == "software_bug"
