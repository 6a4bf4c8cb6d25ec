"""The live memory of a snapshot as a flame graph: a box for each frame of the user's code, as wide as what was allocated below it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from diagnose.diagnosis import Diagnosis
from diagnose.phrases import Lang
from diagnose.records import NamedTuple
from diagnose.render.parts import card_bar, snapshot_view
from diagnose.snapshot.measure import Held
from diagnose.snapshot.stack_frames import Frame
from diagnose.units import show

#: A box is drawn from so many per cent on, and carries a name from so many.
LEAST, ROOM_FOR_NAME = 0.3, 5.0
#: Rows that are drawn at most, and the height of one.
ROWS, HEIGHT = 24, 22


class Box(NamedTuple):
    """A frame: position and width in per cent, its row, kind of most of its memory, name, and what a pointer is told."""

    left: float
    width: float
    top: int
    kind: str
    name: str
    told: str


class Flame(NamedTuple):
    boxes: list[Box]
    height: int
    label: str


@dataclass
class _Node:
    bytes: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    below: dict[Frame, _Node] = field(default_factory=dict)


def draw(diagnosis: Diagnosis, lang: Lang) -> Flame | None:
    """The flame graph; None without a snapshot that has frames."""
    taken = diagnosis.snapshot
    held = [one for one in taken.stacks if one.frames] if taken is not None else []
    if taken is None or not held:
        return None
    root = _tree(held)
    boxes = list(_boxes(root, 0.0, 0, root.bytes, lang))
    rows = max(box.top for box in boxes) // HEIGHT + 1
    widest = max(boxes, key=lambda box: (box.top == 0, box.width))
    return Flame(boxes, rows * HEIGHT, f"{show(root.bytes)}; {widest.told}")


def _tree(held: Sequence[Held]) -> _Node:
    root = _Node()
    for one in held:
        node = root
        root.bytes += one.bytes
        for frame in one.frames:
            node = node.below.setdefault(frame, _Node())
            node.bytes += one.bytes
            node.kinds[one.group] += one.bytes
    return root


def _boxes(node: _Node, left: float, row: int, whole: int, lang: Lang) -> Iterator[Box]:
    """The frames below a node, the largest first, each with those below it."""
    if row >= ROWS:
        return
    for frame, inner in sorted(node.below.items(), key=lambda item: -item[1].bytes):
        width = 100 * inner.bytes / max(whole, 1)
        if width < LEAST:
            return
        group = inner.kinds.most_common(1)[0][0]
        kind = card_bar.PART_OF.get(group, "other" if group == "comm_buffers" else "unexplained")
        name = f"{frame.function} · {frame.file.rsplit('/', 1)[-1]}:{frame.line}" if width >= ROOM_FOR_NAME else ""
        told = f"{snapshot_view.frame_text(frame)}: {show(inner.bytes)}, {snapshot_view.group(group, lang)}"
        yield Box(left, width, row * HEIGHT, kind, name, told)
        yield from _boxes(inner, left, row + 1, whole, lang)
        left += width
