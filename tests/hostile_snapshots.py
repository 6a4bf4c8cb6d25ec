"""Pickles made to cost a reader of memory snapshots time or memory, or to crash it: by hand, and by mutation of a real one's opcodes."""

from __future__ import annotations

import pickle
import pickletools
import random
import struct
from collections.abc import Iterator

from snapshots_made import made

#: The opcodes of a tuple of tuples, two references in each: `str`, `hash`, `repr` and `==` of it take 2^40 steps.
NESTED = b")" + b"q\xf0h\xf0\x86" * 40
HEAD = b"\x80\x04"
#: Opcodes of values: what may stand where a text or a number belongs.
VALUES = [
    *(NESTED, b"N", b"\x88", b")", b"]", b"}", b"K\x00", b"K\xff", b"J\xff\xff\xff\xff", b"M\xff\xff", b"C\x01x", b"\x8f"),
    *(b"\x8a\x08" + b"\xff" * 7 + b"\x7f", b"\x8a\x10" + b"\xff" * 15 + b"\x7f", b"G\x7f\xf0" + bytes(6), b"G\x7f\xf8" + bytes(6)),
    *(b"X\x00\x00\x00\x00", b"X\x03\x00\x00\x00\xed\xa0\x80", b"X\x06\x00\x00\x00action", b"X\x03\x00\x00\x00oom"),
    *(b"h\x00", b"h\x05", b"j\x10\x00\x00\x00"),
]
#: Opcodes of structure.
MARKS = [b"(", b"0", b"2", b"e", b"u", b"a"]

VALUE_OPCODES = [bytes([opcode]) for opcode in b"KMJ\x8aX\x8chjN\x88\x89)]}G"]


def text(word: str) -> bytes:
    data = word.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def number(value: int) -> bytes:
    data = pickle.encode_long(value)
    return b"\x8a" + bytes([len(data)]) + data


def mapping(**values: bytes) -> bytes:
    return b"}(" + b"".join(text(key) + value for key, value in values.items()) + b"u"


def snapshot(segments: bytes = b"", entries: bytes = b"") -> bytes:
    return HEAD + mapping(segments=b"](" + segments + b"e", device_traces=b"](](" + entries + b"ee") + b"."


def segment(blocks: bytes, **values: bytes) -> bytes:
    return mapping(**{"device": b"K\x00", "total_size": b"K\x09", "stream": b"K\x00", **values, "blocks": b"](" + blocks + b"e"})


def block(frames: bytes) -> bytes:
    return mapping(size=b"K\x08", requested_size=b"K\x08", state=text("active_allocated"), frames=frames)


def frame(file: bytes, name: bytes, line: bytes = b"K\x01") -> bytes:
    return mapping(filename=file, name=name, line=line)


def same_hash(count: int) -> Iterator[bytes]:
    """Numbers that Python hashes alike."""
    return (number(value * (2**61 - 1)) for value in range(1, count))


def made_by_hand(size: int) -> dict[str, bytes]:
    """A pickle of about `size` bytes for each mechanism."""
    few = size // 40
    long_name = "torch/" * 150_000 + ".py"
    references = b"](" + b"h\x01" * 10_000 + b"e"
    return {
        "nested tuples for a file": snapshot(segment(block(b"](" + frame(NESTED, text("f")) + b"e"))),
        "nested tuples for an action": snapshot(entries=mapping(action=NESTED, size=b"K\x01")),
        "nested tuples for a state": snapshot(segment(mapping(size=b"K\x01", state=NESTED, frames=b"]"))),
        "numbers of one hash in a set": HEAD + b"\x8f(" + b"".join(same_hash(size // 12)) + b"\x90.",
        "tuples within tuples": HEAD + b")" + b"\x85" * size + b".",
        "empty sets": HEAD + b"(" + b"\x8f" * size + b"t.",
        "empty dicts": HEAD + b"](" + b"}" * size + b"e.",
        "numbers in a list": HEAD + b"]" + b"M\xff\xffa" * (size // 4) + b".",
        "one text in a dict without end": HEAD + b"}" + b"".join(text(f"{key}") + b"Ns" for key in range(few)) + b".",
        "a dict consumed again and again": HEAD
        + b"".join(b"}r" + struct.pack("<I", slot) for slot in range(few))
        + b"".join(b"j" + struct.pack("<I", slot) + b"(" + text("time_us") + b"Nu" for slot in range(few))
        + b".",
        "frames of a long file": snapshot(segment(block(b"](" + frame(text(long_name), text("f")) + b"q\x01e") + block(references) * 20)),
        "a long stack for each failure": snapshot(
            segment(block(b"](" + frame(text("a.py"), text("f")) + b"q\x01e") + block(references + b"q\x02")),
            mapping(action=text("oom"), size=b"K\x01", frames=b"h\x02") * few,
        ),
        "a pool for each segment": snapshot(b"".join(segment(b"", stream=number(stream << 20)) for stream in range(few))),
        "a card for each segment": snapshot(b"".join(segment(b"", device=number(device)) for device in range(few))),
        "an action for each entry": snapshot(entries=b"".join(mapping(action=number(word << 20), size=b"K\x01") for word in range(few))),
        "frames that refer to nothing": _frames_that_refer_to_nothing(),
        "half a character": snapshot(
            segment(block(b"](" + frame(b"X\x06\x00\x00\x00\xed\xa0\x80.py", b"X\x03\x00\x00\x00\xed\xa0\x80") + b"e"))
        ),
        "sizes that no memory has": snapshot(segment(block(b"]").replace(b"K\x08", number(2**63 - 1)) * 9, total_size=number(2**63 - 1))),
    }


def _frames_that_refer_to_nothing() -> bytes:
    """The last entry of a history, which is read by its shape."""
    frames = [{"filename": "a.py", "line": 1, "name": "f"}]
    data = pickle.dumps({"device_traces": [[{"frames": frames, "size": 1 << 21, "action": "alloc"} for _ in range(9)]]}, 4)
    before, key, after = data.rpartition(b"h\x05")
    return before + key + b"h\xee" + after[2:]


def mutated(rng: random.Random, changes: int = 3) -> bytes:
    """A snapshot of some opcodes less, more or other than torch would write."""
    data = pickle.dumps(made(), rng.choice((2, 4, 5)))
    starts = [at for _, _, at in pickletools.genops(data) if at is not None]
    pieces = [data[start:end] for start, end in zip(starts, [*starts[1:], len(data)], strict=True)]
    values = [at for at, piece in enumerate(pieces) if piece[:1] in VALUE_OPCODES]
    for _ in range(rng.randint(1, changes)):
        at = rng.randrange(1, len(pieces))
        match rng.randrange(12):
            case 1:
                del pieces[at : at + rng.randint(1, 3)]
            case 2:
                pieces[at:at] = pieces[at : at + rng.randint(1, 40)] * rng.randint(1, 3)
            case 3:
                pieces.insert(at, rng.choice([*VALUES, *MARKS]))
            case 4:
                pieces[at] = rng.choice(pieces)
            case 5:  # every occurrence: the keys and texts that a memo shares
                old, new = pieces[at], rng.choice([*VALUES, *pieces])
                pieces = [pieces[0], *(new if piece == old else piece for piece in pieces[1:])]
            case _:  # the commonest: the structure stays, and a value of another type or size is in it
                at = min(rng.choice(values), len(pieces) - 1)
                pieces[at] = rng.choice(VALUES if pieces[at][:1] in VALUE_OPCODES else [pieces[at]])
    return b"".join(pieces)
