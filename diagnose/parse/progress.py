"""How far the job was: progress bars and step counters before a failure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from diagnose.parse.lines import clean
from diagnose.parse.pattern import later
from diagnose.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

#: A state of a tqdm bar; its description is what stands before it in the line.
_BAR = later(rb"(\d{1,3})%\|[^|\r\n]{0,300}\| *([\d,]{1,20})/([\d,]{1,20}) \[")
_COUNTER = later(
    rb"global_step/max_steps': '(\d{1,12})/(\d{1,12})'|\biteration {1,8}(\d{1,12})/ {0,8}(\d{1,12}) \|"
    rb"|\bINFO - (?:\x1b\[\d{1,3}m)?step: {1,8}(\d{1,12})()|\bstep:(\d{1,12}) - ()"
    rb"|\bIter\(train\) {1,3}\[ {0,8}(\d{1,12})/(\d{1,12})\]|\bEpoch\(train\) {1,3}\[1\]\[ {0,8}(\d{1,12})/(\d{1,12})\]"
    rb"| iter: (\d{1,12})() {1,4}total_loss|^Step (\d{1,12})() \| loss:|\"current_steps\": (\d{1,12}), \"total_steps\": (\d{1,12})",
    re.MULTILINE,
)
#: Bars of what is no training.
_OTHER = later(
    r"(?i)load|map|token|download|fetch|shard|generat|processed|prompts|packing|filter|sav|writ|eval|valid|convert"
    r"|captur|dropping|group|experience"
)
_ROUND = later(r"(?i)^(episode|rollout|outer)")
_MICRO = later(r"(?i)^train epoch")


class Bar(NamedTuple):
    """The last state of a bar; `at` is its offset in the bytes looked at."""

    label: str
    step: int
    total: int
    at: int

    @property
    def trains(self) -> bool:
        return not _OTHER.search(self.label)


class Progress(NamedTuple):
    """The last states before a failure of the bars that count training steps, rounds of a rollout, and micro batches of an update."""

    steps: Bar | None = None
    rounds: Bar | None = None
    micro: Bar | None = None


def bars(raw: bytes) -> list[Bar]:
    """The last state of every bar in these bytes, in order."""
    last: dict[tuple[str, int], Bar] = {}
    for bar in states(raw):
        last.pop((bar.label, bar.total), None)
        last[bar.label, bar.total] = bar
    return list(last.values())


def states(raw: bytes) -> Iterator[Bar]:
    """Every state of every bar in these bytes: those of bars in order, then those of counters."""
    labels: dict[bytes, str] = {}
    for match in _BAR.finditer(raw):
        left = max(0, match.start() - 160)
        begin = max(left, raw.rfind(b"\r", left, match.start()) + 1, raw.rfind(b"\n", left, match.start()) + 1)
        words = raw[begin : match.start()]
        label = labels.get(words)
        if label is None:
            label = labels[words] = clean(words.decode("utf-8", "replace"))[1].strip(" :")
        yield Bar(label, int(match[2].replace(b",", b"") or 0), int(match[3].replace(b",", b"") or 0), match.start())
    for match in _COUNTER.finditer(raw):
        step, total = next((int(a), int(b or 0)) for a, b in zip(match.groups()[::2], match.groups()[1::2], strict=True) if a)
        yield Bar("", step, total, match.start())


def before(raw: bytes, evaluation_from: int = -1, planned: int | None = None) -> Progress:
    """The progress at the end of these bytes. `evaluation_from`: where an evaluation began that has bars of its own;
    `planned`: the number of steps that the log announces."""
    seen = bars(raw)
    training = [bar for bar in seen if bar.trains and (evaluation_from < 0 or bar.at < evaluation_from)]
    rounds = next((bar for bar in reversed(training) if _ROUND.match(bar.label)), None)
    micro = next((bar for bar in reversed(training) if _MICRO.match(bar.label)), None) if rounds else None
    steps = [bar for bar in training if not _ROUND.match(bar.label) and not (rounds and _MICRO.match(bar.label))]
    named = [bar for bar in steps if planned and bar.total == planned]
    counting = named or steps
    return Progress(counting[-1] if counting else None, rounds, micro)
