"""A safe, streaming unpickler for plain values.

Python's own `pickle` imports and calls what a file names, and even with that forbidden it builds the whole file as objects, six bytes for
each of the file's. This loop knows the opcodes that build dicts, lists, tuples, sets, texts and numbers, and refuses any other. Each dict
is passed to a `DictConsumer` once it is complete, which may put something smaller in its place.

Source of the opcodes: Lib/pickletools.py of CPython; of what torch writes: torch/csrc/jit/serialization/pickler.cpp (protocol 2,
lists without batches) and Python's C pickler (protocol 4 and 5, batches of 1,000).
"""

from __future__ import annotations

from struct import unpack_from
from sys import getrefcount
from typing import TYPE_CHECKING, Any, Protocol

from diagnose.snapshot.shapes import SHAPES, Memo, Shape, learn_shape
from diagnose.snapshot.snapshot_limits import (
    DEPTH,
    DIGITS,
    IDLE,
    IDLE_PER_DICT,
    MEMORY,
    PADDING,
    TEXT,
    BoundedReader,
    UnreadableSnapshot,
)

if TYPE_CHECKING:
    pass

#: Opcodes that reach outside the file, and what they would do.
FORBIDDEN = {
    **dict.fromkeys(b"c\x93", "import"),
    **dict.fromkeys(b"R", "call"),
    **dict.fromkeys(b"io\x81\x92", "make"),
    **dict.fromkeys(b"b", "build"),
    **dict.fromkeys(b"PQ", "persistent"),
    **dict.fromkeys(b"\x82\x83\x84", "extension"),
    **dict.fromkeys(b"\x97\x98", "buffer"),
}
#: Opcodes of protocols 0 and 1, which no Python 3 writes by default.
OBSOLETE = frozenset(b"FILSTUVdglp")
#: Memory of values, in bytes: a dict with a few keys and each further one, a list, a tuple, a text without its characters, a reference to a
#: number, an entry of the memo.
DICT, KEY, LIST, TUPLE, STRING, NUMBER, MEMOIZED = 240, 100, 88, 72, 64, 40, 140


class DictConsumer(Protocol):
    """Receives each dict once it is complete."""

    def consume(self, value: dict[str, Any], parent: Any) -> Any:
        """The replacement for a dict: itself, something smaller that later values may refer to, or `CONSUMED` if none may.
        `parent`: the list that it is being added to, if any."""

    def raw_consumer(self, keys: tuple[str, ...], memo: Memo) -> Any:
        """A function that consumes dicts with these keys by their undecoded values (`shapes`); None if only `consume` can."""

    def kept(self) -> tuple[int, int]:
        """The number of dicts consumed, and the bytes of memory that are kept of them."""


class _Consumed:
    """Stands in for a dict that was consumed."""


CONSUMED = _Consumed()


def load(reader: BoundedReader, consumer: DictConsumer) -> Any:
    """Unpickle a file. Raises UnreadableSnapshot for anything but a pickle of plain values within the limits."""
    try:
        return _run(reader, consumer)
    except (IndexError, KeyError, TypeError, ValueError, AttributeError) as error:  # an empty stack, a missing memo entry
        raise UnreadableSnapshot("corrupt", at=reader.bytes_read) from error


def _run(reader: BoundedReader, consumer: DictConsumer) -> Any:  # noqa: C901 - one loop, frequent opcodes first: a call for each doubles its time
    data, pos = reader.refill(b"", 0), 0
    if data[:1] != b"\x80":
        raise UnreadableSnapshot("protocol" if data[:1] and data[0] in b"(}]cdl" else "no_pickle")
    if not 2 <= data[1] <= 5:
        raise UnreadableSnapshot("protocol")
    pos = 2
    safe = len(data) - PADDING
    stack: list[Any] = []
    marks: list[int] = []
    memo = Memo()
    shapes: list[Shape] = []
    dict_start = -1  # position in `data` of the dict opened last
    unfilled: dict[int, int] = {}  # memo slots of empty dicts, by id
    push, consume = stack.append, consumer.consume
    memo_size = memory = 0
    from_bytes = int.from_bytes
    while True:
        if pos >= safe:
            if reader.is_at_end and pos >= len(data) - PADDING:
                raise UnreadableSnapshot("cut_off", at=reader.bytes_read)
            if not reader.is_at_end:
                data, pos = reader.refill(data, pos), 0
                safe, dict_start = len(data) - PADDING, -1
                count, kept = consumer.kept()
                if memory + NUMBER * len(stack) + MEMOIZED * len(memo) + memo.repeated_bytes() + kept > MEMORY:
                    raise UnreadableSnapshot("too_much")
                if reader.bytes_read > IDLE + IDLE_PER_DICT * count:
                    raise UnreadableSnapshot("no_snapshot")
        op = data[pos]
        pos += 1
        if op == 0x68:  # BINGET
            push(memo[data[pos]])
            pos += 1
        elif op == 0x4B:  # BININT1
            push(data[pos])
            pos += 1
        elif op == 0x8A:  # LONG1
            size = data[pos]
            if size > DIGITS:
                raise UnreadableSnapshot("too_long", count=size)
            pos += 1 + size
            push(from_bytes(data[pos - size : pos], "little", signed=True))
        elif op == 0x94:  # MEMOIZE
            top = stack[-1]
            if top is not CONSUMED:
                memo[memo_size] = top
            if type(top) is dict and not top:
                unfilled[id(top)] = memo_size
            memo_size += 1
        elif op == 0x6A:  # LONG_BINGET
            push(memo[from_bytes(data[pos : pos + 4], "little")])
            pos += 4
        elif op == 0x4D:  # BININT2
            push(data[pos] | data[pos + 1] << 8)
            pos += 2
        elif op == 0x4A:  # BININT
            push(from_bytes(data[pos : pos + 4], "little", signed=True))
            pos += 4
        elif op == 0x7D:  # EMPTY_DICT
            for shape in shapes:
                hit = shape.match(data, pos - 1)
                if hit is not None:
                    break
            else:
                dict_start = pos - 1
                push({})
                memory += DICT
                continue
            parent = stack[-1] if stack else None
            if type(parent) is not list:
                parent = stack[marks[-1] - 1] if marks and marks[-1] else None
            match, consume_raw, slots = shape.match, shape.consume, shape.slots
            texts = memo.text_numbers(shape.texts)
            while hit is not None:  # dicts of one shape follow one another
                consume_raw(hit.groups(), parent)
                if type(parent) is not list or stack[-1] is not CONSUMED:
                    push(CONSUMED)  # one stands for all that follow one another: torch's own pickler writes lists without batches
                if texts:
                    memo.repeat(memo_size + 1, texts)
                memo_size += slots
                pos = hit.end()
                hit = match(data, pos)
            if shape is not shapes[0]:
                shapes.remove(shape)
                shapes.insert(0, shape)
        elif op == 0x28:  # MARK
            marks.append(len(stack))
            if len(marks) > DEPTH:
                raise UnreadableSnapshot("too_deep")
        elif op in (0x75, 0x73):  # SETITEMS, SETITEM
            if op == 0x75:
                start = marks.pop()
                items = stack[start:]
                del stack[start:]
            else:
                items = stack[-2:]
                del stack[-2:]
            mapping = stack[-1]
            if type(mapping) is not dict or len(items) % 2:
                raise ValueError
            memo_slot = unfilled.pop(id(mapping), None) if not mapping else None
            keys = items[::2]
            for key in keys:
                if type(key) is not str:
                    raise UnreadableSnapshot("odd_key")
            was_empty = not mapping
            mapping.update(zip(keys, items[1::2], strict=True))
            memory += KEY * len(keys)
            if was_empty:
                enclosing = stack[-2] if len(stack) > 1 else None
                if type(enclosing) is not list:
                    enclosing = stack[marks[-1] - 1] if marks and marks[-1] else None
                replacement = consume(mapping, enclosing)
                if replacement is not mapping:
                    stack[-1] = replacement
                    if memo_slot is not None:
                        if replacement is CONSUMED:
                            memo.pop(memo_slot, None)
                        else:
                            memo[memo_slot] = replacement
                    if replacement is CONSUMED and dict_start >= 0 and op == 0x75 and len(mapping) == len(keys) and len(shapes) < SHAPES:
                        raw_consumer = consumer.raw_consumer(tuple(mapping), memo)
                        new_shape = None if raw_consumer is None else learn_shape(data[dict_start:pos], len(mapping), raw_consumer)
                        dict_start = -1  # also if nothing was learned: the same bytes are not looked at twice
                        if new_shape is not None:
                            shapes.insert(0, new_shape)
                    if replacement is CONSUMED and type(enclosing) is list and len(stack) > 1 and stack[-2] is CONSUMED:
                        stack.pop()
                    if getrefcount(mapping) <= 2:  # nothing else in the file refers to it
                        memory -= DICT + KEY * len(keys)
        elif op == 0x5D:  # EMPTY_LIST
            push([])
            memory += LIST
        elif op == 0x65:  # APPENDS
            start = marks.pop()
            sequence = stack[start - 1]
            if type(sequence) is not list or not start:
                raise ValueError
            if start < len(stack) and stack[start] is not CONSUMED:
                sequence.extend(stack[start:])
                memory += NUMBER * (len(stack) - start)
            del stack[start:]
        elif op == 0x61:  # APPEND
            item = stack.pop()
            if item is not CONSUMED:
                sequence = stack[-1]
                if type(sequence) is not list:
                    raise ValueError
                sequence.append(item)
                memory += NUMBER
        elif op in (0x8C, 0x58, 0x8D, 0x43, 0x42, 0x8E, 0x96):  # texts and bytes
            width = 1 if op in (0x8C, 0x43) else 4 if op in (0x58, 0x42) else 8
            size = from_bytes(data[pos : pos + width], "little")
            pos += width
            if size > TEXT:
                raise UnreadableSnapshot("too_long", count=size)
            if pos + size > safe:
                data, pos = reader.refill(data, pos, size + PADDING), 0
                safe, dict_start = len(data) - PADDING, -1
                if size > safe:
                    raise UnreadableSnapshot("cut_off", at=reader.bytes_read)
            raw = data[pos : pos + size]
            pos += size
            push(str(raw, "utf-8", "surrogatepass") if op in (0x8C, 0x58, 0x8D) else raw)
            memory += STRING + (size if raw.isascii() else 4 * size)
        elif op == 0x4E:
            push(None)
        elif op == 0x88:
            push(True)
        elif op == 0x89:
            push(False)
        elif op == 0x47:  # BINFLOAT
            push(unpack_from(">d", data, pos)[0])
            pos += 8
        elif op in (0x71, 0x72):  # BINPUT, LONG_BINPUT
            width = 1 if op == 0x71 else 4
            put_slot = from_bytes(data[pos : pos + width], "little")
            pos += width
            top = stack[-1]
            if top is not CONSUMED:
                memo[put_slot] = top
            if type(top) is dict and not top:
                unfilled[id(top)] = put_slot
        elif op == 0x95:  # FRAME: a length that only buffered readers need
            pos += 8
        elif op == 0x85:
            stack[-1] = (stack[-1],)
            memory += TUPLE
        elif op == 0x86:
            stack[-2:] = [(stack[-2], stack[-1])]
            memory += TUPLE
        elif op == 0x87:
            stack[-3:] = [(stack[-3], stack[-2], stack[-1])]
            memory += TUPLE
        elif op == 0x29:
            push(())
        elif op == 0x74:  # TUPLE
            start = marks.pop()
            memory += TUPLE + NUMBER * (len(stack) - start)
            stack[start:] = [tuple(stack[start:])]
        elif op in (
            0x8F,
            0x90,
            0x91,
        ):  # sets, whose values are hashed: numbers with one hash take quadratic time, nested tuples exponential
            raise UnreadableSnapshot("a_set")
        elif op == 0x8B:  # LONG4
            size = from_bytes(data[pos : pos + 4], "little", signed=True)
            if not 0 <= size <= DIGITS:
                raise UnreadableSnapshot("too_long", count=size)
            pos += 4 + size
            push(from_bytes(data[pos - size : pos], "little", signed=True))
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
        elif op in FORBIDDEN:
            raise UnreadableSnapshot("reaches", what=FORBIDDEN[op])
        elif op in OBSOLETE:
            raise UnreadableSnapshot("protocol")
        elif not op and reader.is_at_end and pos > len(data) - PADDING:
            raise UnreadableSnapshot("cut_off", at=reader.bytes_read)
        else:
            raise UnreadableSnapshot("corrupt", at=reader.bytes_read)
