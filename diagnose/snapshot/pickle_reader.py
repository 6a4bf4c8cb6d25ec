"""Reads a pickle that holds nothing but plain values, from the first opcode to the last and without a way back.

Python's own `pickle` imports and calls what a file names, and even where that is forbidden it holds the whole file as objects,
six bytes for each of the file's. This loop knows the opcodes that make dicts, lists, tuples, sets, texts and numbers; any other ends
the reading. A dict is shown to a `taker` as soon as it is complete, which may keep something smaller in its place.

Source of the opcodes: Lib/pickletools.py of CPython; of what torch writes: torch/csrc/jit/serialization/pickler.cpp (protocol 2,
lists without batches) and Python's C pickler (protocol 4 and 5, batches of 1,000).
"""

from __future__ import annotations

from struct import unpack_from
from typing import TYPE_CHECKING, Any, Protocol

from diagnose.snapshot.feed import SPARE, Feed
from diagnose.snapshot.shapes import MOST, Memo, Shape, learned
from diagnose.snapshot.snapshot_limits import DEPTH, DIGITS, HELD, MEMO, PATIENCE, STACK, TEXT, Refused

if TYPE_CHECKING:
    from typing import BinaryIO

#: Opcodes that reach outside the file, and what they want to do.
REACHING = {
    **dict.fromkeys(b"c\x93", "import"),
    **dict.fromkeys(b"R", "call"),
    **dict.fromkeys(b"io\x81\x92", "make"),
    **dict.fromkeys(b"b", "build"),
    **dict.fromkeys(b"PQ", "persistent"),
    **dict.fromkeys(b"\x82\x83\x84", "extension"),
    **dict.fromkeys(b"\x97\x98", "buffer"),
}
#: Opcodes of protocols 0 and 1 that nothing writes since Python 3.0 unless asked to.
OLD = frozenset(b"FILSTUVdglpt")
PLAIN = (str, int, float, bytes, type(None))


class Taker(Protocol):
    """Who is shown each dict once it is complete."""

    def take(self, made: dict[str, Any], within: Any) -> Any:
        """What stands in the dict's place from now on: itself, something smaller that may be referred to again, or `GONE`.
        `within`: the list that it is about to join, where it is."""

    def intake(self, keys: tuple[str, ...], memo: Memo) -> Any:
        """What takes in a dict of these keys by its raw values (diagnose/snapshot/shapes.py); None: only `take` does."""


class _Gone:
    """What is left of a dict that was taken in."""


GONE = _Gone()


def load(opened: BinaryIO, taker: Taker, patience: float = PATIENCE) -> Any:
    """The value that the file holds. Raises Refused for anything that is no pickle of plain values, or too much of one."""
    feed = Feed(opened, patience)
    try:
        return _run(feed, taker)
    except (IndexError, KeyError, TypeError, ValueError, AttributeError) as error:  # a stack that is empty, a memo that has no such entry
        raise Refused("corrupt", at=feed.count) from error


def _run(feed: Feed, taker: Taker) -> Any:  # noqa: C901 - one loop, the frequent opcodes first: a call for each doubles its time
    data, at = feed.more(b"", 0), 0
    if data[:1] != b"\x80":
        raise Refused("protocol" if data[:1] and data[0] in b"(}]cdl" else "no_pickle")
    if not 2 <= data[1] <= 5:
        raise Refused("protocol")
    at = 2
    safe = len(data) - SPARE
    stack: list[Any] = []
    marks: list[int] = []
    memo = Memo()
    shapes: list[Shape] = []
    began = -1  # where the dict that was opened last begins in `data`
    fresh: dict[int, int] = {}  # empty dicts that wait to be filled: where the memo has them
    push, take = stack.append, taker.take
    count = held = 0
    from_bytes = int.from_bytes
    while True:
        if at >= safe:
            if feed.ended and at >= len(data) - SPARE:
                raise Refused("cut_off", at=feed.count)
            if not feed.ended:
                data, at = feed.more(data, at), 0
                safe, began = len(data) - SPARE, -1
                if len(stack) > STACK or len(memo) > MEMO or held > HELD or len(marks) > DEPTH:
                    raise Refused("too_much")
        op = data[at]
        at += 1
        if op == 0x68:  # BINGET
            push(memo[data[at]])
            at += 1
        elif op == 0x4B:  # BININT1
            push(data[at])
            at += 1
        elif op == 0x8A:  # LONG1
            size = data[at]
            if size > DIGITS:
                raise Refused("too_long", count=size)
            at += 1 + size
            push(from_bytes(data[at - size : at], "little", signed=True))
        elif op == 0x94:  # MEMOIZE
            top = stack[-1]
            if top is not GONE:
                memo[count] = top
            if type(top) is dict and not top:
                fresh[id(top)] = count
            count += 1
        elif op == 0x6A:  # LONG_BINGET
            push(memo[from_bytes(data[at : at + 4], "little")])
            at += 4
        elif op == 0x4D:  # BININT2
            push(data[at] | data[at + 1] << 8)
            at += 2
        elif op == 0x4A:  # BININT
            push(from_bytes(data[at : at + 4], "little", signed=True))
            at += 4
        elif op == 0x7D:  # EMPTY_DICT
            for shape in shapes:
                found = shape.match(data, at - 1)
                if found is not None:
                    break
            else:
                began = at - 1
                push({})
                held += 4
                continue
            within = stack[-1] if stack else None
            if type(within) is not list:
                within = stack[marks[-1] - 1] if marks and marks[-1] else None
            match, intake, slots = shape.match, shape.intake, shape.slots
            texts = memo.numbers(shape.texts)
            while found is not None:  # the next one looks alike, as a rule
                intake(found.groups(), within)
                push(GONE)
                if texts:
                    memo.repeat(count + 1, texts)
                count += slots
                at = found.end()
                found = match(data, at)
            if shape is not shapes[0]:
                shapes.remove(shape)
                shapes.insert(0, shape)
        elif op == 0x28:  # MARK
            marks.append(len(stack))
            if len(marks) > DEPTH:
                raise Refused("too_deep")
        elif op in (0x75, 0x73):  # SETITEMS, SETITEM
            if op == 0x75:
                start = marks.pop()
                items = stack[start:]
                del stack[start:]
            else:
                items = stack[-2:]
                del stack[-2:]
            made = stack[-1]
            if type(made) is not dict or len(items) % 2:
                raise ValueError
            known = fresh.pop(id(made), None) if not made else None
            keys = items[::2]
            for key in keys:
                if type(key) is not str:
                    raise Refused("odd_key")
            first = not made
            made.update(zip(keys, items[1::2], strict=True))
            held += 2 * len(keys) if not first else 0
            if first:
                below = stack[-2] if len(stack) > 1 else None
                if type(below) is not list:
                    below = stack[marks[-1] - 1] if marks and marks[-1] else None
                left = take(made, below)
                if left is not made:
                    stack[-1] = left
                    held -= 4
                    if known is not None:
                        if left is GONE:
                            memo.pop(known, None)
                        else:
                            memo[known] = left
                    if left is GONE and began >= 0 and op == 0x75 and len(made) == len(keys) and len(shapes) < MOST:
                        fill = taker.intake(tuple(made), memo)
                        shape_of = None if fill is None else learned(data[began:at], len(made), fill)
                        if shape_of is not None:
                            shapes.insert(0, shape_of)
                            began = -1
        elif op == 0x5D:  # EMPTY_LIST
            push([])
            held += 2
        elif op == 0x65:  # APPENDS
            start = marks.pop()
            listed = stack[start - 1]
            if type(listed) is not list or not start:
                raise ValueError
            if start < len(stack) and stack[start] is not GONE:
                listed.extend(stack[start:])
                held += len(stack) - start >> 1
            del stack[start:]
        elif op == 0x61:  # APPEND
            item = stack.pop()
            if item is not GONE:
                listed = stack[-1]
                if type(listed) is not list:
                    raise ValueError
                listed.append(item)
        elif op in (0x8C, 0x58, 0x8D, 0x43, 0x42, 0x8E, 0x96):  # texts and bytes
            width = 1 if op in (0x8C, 0x43) else 4 if op in (0x58, 0x42) else 8
            size = from_bytes(data[at : at + width], "little")
            at += width
            if size > TEXT:
                raise Refused("too_long", count=size)
            if at + size > safe:
                data, at = feed.more(data, at, size + SPARE), 0
                safe, began = len(data) - SPARE, -1
                if size > safe:
                    raise Refused("cut_off", at=feed.count)
            raw = data[at : at + size]
            at += size
            push(str(raw, "utf-8", "surrogatepass") if op in (0x8C, 0x58, 0x8D) else raw)
            held += 1 + (size >> 6)
        elif op == 0x4E:
            push(None)
        elif op == 0x88:
            push(True)
        elif op == 0x89:
            push(False)
        elif op == 0x47:  # BINFLOAT
            push(unpack_from(">d", data, at)[0])
            at += 8
        elif op in (0x71, 0x72):  # BINPUT, LONG_BINPUT
            width = 1 if op == 0x71 else 4
            number = from_bytes(data[at : at + width], "little")
            at += width
            top = stack[-1]
            if top is not GONE:
                memo[number] = top
            if type(top) is dict and not top:
                fresh[id(top)] = number
        elif op == 0x95:  # FRAME: a length that only helps a reader of another kind
            at += 8
        elif op == 0x85:
            stack[-1] = (stack[-1],)
        elif op == 0x86:
            stack[-2:] = [(stack[-2], stack[-1])]
        elif op == 0x87:
            stack[-3:] = [(stack[-3], stack[-2], stack[-1])]
        elif op == 0x29:
            push(())
        elif op == 0x74:  # TUPLE
            start = marks.pop()
            held += 1 + (len(stack) - start >> 1)
            stack[start:] = [tuple(stack[start:])]
        elif op == 0x8F:
            push(set())
            held += 4
        elif op in (0x90, 0x91):  # ADDITEMS, FROZENSET
            start = marks.pop()
            items = stack[start:]
            del stack[start:]
            if not all(isinstance(item, PLAIN) for item in items):  # a tuple of tuples takes for ever to hash
                raise Refused("odd_key")
            held += 2 * len(items)
            if op == 0x91:
                push(frozenset(items))
            elif type(stack[-1]) is set:
                stack[-1].update(items)
            else:
                raise ValueError
        elif op == 0x8B:  # LONG4
            size = from_bytes(data[at : at + 4], "little", signed=True)
            if not 0 <= size <= DIGITS:
                raise Refused("too_long", count=size)
            at += 4 + size
            push(from_bytes(data[at - size : at], "little", signed=True))
        elif op == 0x30:
            stack.pop()
        elif op == 0x31:
            del stack[marks.pop() :]
        elif op == 0x32:
            push(stack[-1])
        elif op == 0x2E:  # STOP
            if len(stack) != 1 or marks:
                raise ValueError
            return stack[0]
        elif op in REACHING:
            raise Refused("reaches", what=REACHING[op])
        elif op in OLD:
            raise Refused("protocol")
        elif not op and feed.ended and at > len(data) - SPARE:
            raise Refused("cut_off", at=feed.count)
        else:
            raise Refused("corrupt", at=feed.count)
