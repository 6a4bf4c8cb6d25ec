"""How far the job had come: progress bars and step counters before a failure."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.parse.text.line_cleaning import clean
from diagnose.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

BACK = 8  # bars from the end among which the latest that counts training is sought before all are read
LONGEST = 400  # bytes that the state of a bar takes
#: A state of a tqdm bar behind its percentage; its description is what stands before it in the line.
_BAR = lazy_compile(rb"%(?:\|[^|\r\n]{0,300}\|)? *([\d,]{1,20})/([\d,]{1,20}) \[")
_COUNTER = lazy_compile(
    rb"global_step/max_steps': '(\d{1,12})/(\d{1,12})'|\biteration {1,8}(\d{1,12})/ {0,8}(\d{1,12}) \|"
    rb"|\bINFO - (?:\x1b\[\d{1,3}m)?step: {1,8}(\d{1,12})()|\bstep:(\d{1,12}) - ()"
    rb"|\bIter\(train\) {1,3}\[ {0,8}(\d{1,12})/(\d{1,12})\]|\bEpoch\(train\) {1,3}\[1\]\[ {0,8}(\d{1,12})/(\d{1,12})\]"
    rb"|- Epoch \[1\]\[(\d{1,12})()/\d{1,12}\]\s{1,4}lr: "
    rb"|\bepoch {1,4}\d{1,9}, it {1,4}(\d{1,12})()"
    rb"| iter: (\d{1,12})() {1,4}total_loss|^Step (\d{1,12})() \| loss:|\"current_steps\": (\d{1,12}), \"total_steps\": (\d{1,12})",
    re.MULTILINE,
)
#: One of these stands in each.
COUNTS = (
    b"global_step/max_steps'",
    b"iteration ",
    b"step:",
    b"Iter(train)",
    b"Epoch(train)",
    b"- Epoch [1][",
    b"total_loss",
    b", it ",
    b"| loss:",
    b'"current_steps"',
)
#: Bars of what is no training.
_OTHER = lazy_compile(
    r"(?i)load|map|token|download|fetch|shard|generat|process|dataset|prompts|packing|filter|sav|writ|eval|valid|convert"
    r"|captur|dropping|group|experience|comput|mini.?batch|update (?:policy|critic)"
)
_ROUND = lazy_compile(r"(?i)^(episode|rollout|outer)")
_MICRO = lazy_compile(r"(?i)^train epoch")


class Bar(NamedTuple):
    """One state of a progress bar or counter; `at`: its offset in the bytes searched."""

    label: str
    step: int
    total: int
    at: int

    @property
    def trains(self) -> bool:
        return _trains(self.label)


@lru_cache(maxsize=1024)
def _trains(label: str) -> bool:
    return not _OTHER.search(label)


class Progress(NamedTuple):
    """The last states, before a failure, of bars that count training steps, rounds of a rollout, micro batches of an update."""

    steps: Bar | None = None
    rounds: Bar | None = None
    micro: Bar | None = None


def read_bars(raw: bytes) -> list[Bar]:
    """The last state of every bar in these bytes, in order."""
    last: dict[tuple[str, bytes], tuple[bytes, int]] = {}
    for label, step, total, at in _bar_states(raw, 0, len(raw)):
        last.pop((label, total), None)
        last[label, total] = step, at
    by_label: dict[tuple[str, int], Bar] = {}
    for bar in (
        *(Bar(label, _number(step), _number(total), at) for (label, total), (step, at) in last.items()),
        *_counter_states(raw, 0, len(raw)),
    ):
        by_label.pop((bar.label, bar.total), None)
        by_label[bar.label, bar.total] = bar
    return list(by_label.values())


def read_states(raw: bytes, start: int, end: int, counters: bool = True) -> Iterator[Bar]:
    """All states between two line ends: those of progress bars in order, then those of counters (`counters` False: there are none)."""
    for label, step, total, at in _bar_states(raw, start, end):
        yield Bar(label, _number(step), _number(total), at)
    if counters:
        yield from _counter_states(raw, start, end)


def _bar_states(raw: bytes, start: int, end: int) -> Iterator[tuple[str, bytes, bytes, int]]:
    """(label, step, total, offset) of every state of a progress bar."""
    labels: dict[bytes, str] = {}
    for match in _BAR.finditer(raw, start, end):
        sign = match.start()
        at = sign - 1
        while at > start and sign - at < 3 and raw[at - 1 : at].isdigit():
            at -= 1
        if at < start or not raw[at:sign].isdigit():
            continue
        window_start = max(0, at - 160)
        words = raw[max(window_start, raw.rfind(b"\r", window_start, at) + 1, raw.rfind(b"\n", window_start, at) + 1) : at]
        label = labels.get(words)
        if label is None:
            label = labels[words] = clean(words.decode("utf-8", "replace"))[1].strip(" :")
        yield label, match[1], match[2], at


def _counter_states(raw: bytes, start: int, end: int) -> Iterator[Bar]:
    """States of step counters: lines such as `iteration 5/ 100 |`."""
    lines: set[tuple[int, int]] = set()
    for words in COUNTS:
        at = raw.find(words, start, end)
        while at >= 0:
            stop = raw.find(b"\n", at, end)
            stop = stop if stop >= 0 else end
            lines.add((max(start, raw.rfind(b"\n", start, at) + 1), stop))
            at = raw.find(words, stop, end)
    for begin, stop in sorted(lines):
        for match in _COUNTER.finditer(raw, begin, stop):
            step, total = next((int(a), int(b or 0)) for a, b in zip(match.groups()[::2], match.groups()[1::2], strict=True) if a)
            yield Bar("", step, total, match.start())


def _number(digits: bytes) -> int:
    return int(digits.replace(b",", b"") or 0)


def progress_before(raw: bytes, evaluation_from: int = -1, planned: int | None = None, counters: bool = True) -> Progress:
    """The progress at the end of these bytes. `evaluation_from`: offset at which an evaluation with bars of its own began (-1: none);
    `planned`: the number of steps that the log announces; `counters`: whether step counters may occur."""
    if evaluation_from < 0 and not _has_rounds(raw) and not (counters and any(True for _ in _counter_states(raw, 0, len(raw)))):
        latest = _latest_training_bar(raw, planned)
        if latest is not None:
            return Progress(latest)
    all_bars = read_bars(raw)
    training = [bar for bar in all_bars if bar.trains and (evaluation_from < 0 or bar.at < evaluation_from)]
    rounds = next((bar for bar in reversed(training) if _ROUND.match(bar.label)), None)
    micro = next((bar for bar in reversed(training) if _MICRO.match(bar.label)), None) if rounds else None
    steps = [bar for bar in training if not _ROUND.match(bar.label) and not (rounds and _MICRO.match(bar.label))]
    named = [bar for bar in steps if planned and bar.total == planned]
    counting = named or steps
    return Progress(counting[-1] if counting else None, rounds, micro)


def _has_rounds(raw: bytes) -> bool:
    """Whether a bar may count rounds of a rollout; a quick test."""
    lower = raw.lower()
    return any(words in lower for words in (b"episode", b"rollout", b"outer"))


def _latest_training_bar(raw: bytes, planned: int | None) -> Bar | None:
    """The last training bar, of `planned` steps if that is known; None where all bars would have to be read to tell."""
    end = len(raw)
    for _ in range(BACK):
        at = raw.rfind(b"%|", 0, end)
        if at < 0:
            return None
        end = at
        for label, step, total, place in _bar_states(raw, max(0, at - 3), min(len(raw), at + LONGEST)):
            bar = Bar(label, _number(step), _number(total), place)
            if place < at and bar.trains and planned in (None, 0, bar.total):
                return bar
            break
    return None
