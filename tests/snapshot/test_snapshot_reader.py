"""The reader of memory snapshots: the same values as Python's own, nothing but plain ones, and never more than its limits."""

from __future__ import annotations

import io
import os
import pickle
import pickletools
import struct
import subprocess
import sys
from typing import Any

import pytest
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from pace import within
from snapshots_made import PEAK
from sweep import examples, sample

from diagnose.errors import UserError
from diagnose.scan.source import Source
from diagnose.snapshot import pickle_reader, snapshot_limits
from diagnose.snapshot.pickle_reader import load
from diagnose.snapshot.snapshot_limits import BoundedReader, UnreadableSnapshot
from diagnose.snapshot.snapshot_reader import read


class Keeps:
    """A taker that keeps every dict as it is."""

    def consume(self, made: dict[str, Any], within: Any) -> Any:
        return made

    def raw_consumer(self, keys: Any, memo: Any) -> None:
        return None

    def kept(self) -> tuple[int, int]:
        return 0, 0


def loaded(data: bytes) -> Any:
    return load(BoundedReader(io.BytesIO(data)), Keeps())


def outcome(data: bytes) -> Any:
    """The value, or the key of the refusal."""
    try:
        return loaded(data)
    except UnreadableSnapshot as refused:
        return refused.key


def sentence(data: bytes) -> str:
    """What a person is told, in both languages; nothing where a snapshot was read."""
    try:
        read(Source.text(data))
    except UserError as told:
        return f"{told.to('en')}|{told.to('zh')}"
    return ""


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**100), 2**100)
    | st.floats(allow_nan=False)
    | st.text(max_size=300)
    | st.binary(max_size=300),
    lambda inner: (
        st.lists(inner, max_size=6) | st.lists(inner, max_size=6).map(tuple) | st.dictionaries(st.text(max_size=5), inner, max_size=6)
    ),
    max_leaves=30,
)


@given(VALUES, st.sampled_from([2, 3, 4, 5]))
def test_plain_values_come_back_as_python_reads_them(value: Any, protocol: int) -> None:
    """Protocol 2 makes bytes by calls, which are refused; everything else is the same."""
    found = outcome(pickle.dumps(value, protocol))
    assert found == value or (found == "reaches" and protocol < 4)


def test_values_that_are_shared_stay_one_object() -> None:
    """Tracebacks are shared: a copy for each reference would take the file's size many times."""
    shared = ["frame"]
    first, second = loaded(pickle.dumps([shared, shared]))
    assert first is second


class Runs:
    def __reduce__(self) -> Any:
        return os.system, ("touch /tmp/never",)


REACHING = {
    "import": (pickle.dumps(os.system, 4), pickle.dumps(os.system, 2)),
    "call": (b"\x80\x04)R.",),
    "make": (b"\x80\x04))\x81.", b"\x80\x04(ios\nsystem\n."),
    "build": (b"\x80\x04}}b.",),
    "persistent": (b"\x80\x04K\x01Q.", b"\x80\x04P1\n."),
    "extension": (b"\x80\x04\x82\x01.",),
    "buffer": (b"\x80\x05\x97.",),
}


@for_each("what", REACHING)
def test_what_reaches_outside_the_file_is_refused_with_its_intent(what: str) -> None:
    """A pickle is a program: nothing that one could do may happen, and the sentence says what it wanted."""
    for data in REACHING[what]:
        with pytest.raises(UnreadableSnapshot) as refused:
            loaded(data)
        assert refused.value.key == "reaches" and refused.value.values == {"what": what}
        with pytest.raises(UserError) as told:
            read(Source.text(data, "evil.pickle"))
        assert str(told.value).startswith("evil.pickle: refused: the pickle ") and "\n" not in str(told.value)
        assert "拒绝" in told.value.to("zh")


def test_a_call_hidden_deep_in_a_snapshot_is_refused() -> None:
    """Also where all before it was a proper snapshot, and nothing of it runs."""
    with pytest.raises(UserError, match="import code"):
        read(Source.text(pickle.dumps({"segments": [], "device_traces": [[Runs()]]}), "evil.pickle"))
    assert not os.path.exists("/tmp/never")  # noqa: PTH110


def test_every_opcode_is_known() -> None:
    """Each opcode that Python has is read, refused as reaching outside, or refused as old; none is passed over."""
    for opcode in pickletools.opcodes:
        data = b"\x80\x05" + opcode.code.encode("latin-1") + b"\x00" * 20
        assert outcome(data) in ("reaches", "protocol", "corrupt", "cut_off", "too_long", "a_set")


HOSTILE = {
    "text of 2 EiB": (b"\x80\x04\x8d" + struct.pack("<Q", 2**61), "too_long"),
    "bytes of 4 GiB": (b"\x80\x04B" + b"\xff" * 4, "too_long"),
    "text that the file does not hold": (b"\x80\x04X" + struct.pack("<I", 1 << 20) + b"x", "cut_off"),
    "number of 2 GiB": (b"\x80\x04\x8b" + struct.pack("<i", 2**31 - 1), "too_long"),
    "number of -1 bytes": (b"\x80\x04\x8b" + struct.pack("<i", -1), "too_long"),
    "marks without end": (b"\x80\x04" + b"(" * 100_000, "too_deep"),
    "nothing to put in": (b"\x80\x04h\x05.", "corrupt"),
    "empty stack": (b"\x80\x04u.", "corrupt"),
    "keys that hash for ever": (b"\x80\x04}" + b")" + b"\x85" * 3 + b"2\x86" * 60 + b"K\x01s.", "odd_key"),
    "sets that hash for ever": (b"\x80\x04(" + b")" + b"2\x86" * 60 + b"\x91.", "a_set"),
    "protocol 0": (pickle.dumps({"a": 1}, 0), "protocol"),
    "protocol 9": (b"\x80\x09}.", "protocol"),
    "text": (b"hello", "no_pickle"),
    "nothing": (b"", "no_pickle"),
    "two values": (b"\x80\x04K\x01K\x02.", "corrupt"),
}


@for_each("name", HOSTILE)
def test_what_is_hostile_ends_in_one_sentence(name: str) -> None:
    """At once, and without taking the memory that it announces."""
    data, key = HOSTILE[name]
    with within(2):
        with pytest.raises(UnreadableSnapshot) as refused:
            loaded(data)
        assert refused.value.key == key


#: What stands before, what is repeated, and how many million times.
BOMBS = [(b"", b"]", 9), (b"", b"})", 5), (b"", b"}\x94", 5), (b"]\x94(", b"h\x00", 20), (b"(", b"K\x01", 40)]


@for_each("first, repeated, millions", sample(BOMBS, 1))
def test_bombs_end_at_a_limit(first: bytes, repeated: bytes, millions: int) -> None:
    """Nesting, a memo and a stack without end are cut at their limits, within bounded memory."""
    body = first + repeated * (millions << 20)
    code = (
        f"import io, sys\n{PEAK}"
        "from diagnose.snapshot.snapshot_limits import BoundedReader, UnreadableSnapshot\n"
        "from diagnose.snapshot.pickle_reader import load\n"
        "from diagnose.snapshot.collector import Collector\n"
        "data = sys.stdin.buffer.read()\n"
        "try: load(BoundedReader(io.BytesIO(data)), Collector())\n"
        "except UnreadableSnapshot as refused: print(refused.key, peak())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], input=b"\x80\x04" + body, capture_output=True, check=True)
    key, peak = done.stdout.split()
    assert key in (b"too_much", b"cut_off", b"corrupt")
    assert int(peak) < 400 + len(body) / 2**20


def test_reading_ends_in_time() -> None:
    """A pipe that gives little by little is not read for ever."""
    with pytest.raises(UnreadableSnapshot) as refused:
        load(BoundedReader(io.BytesIO(pickle.dumps(["x"] * 10)), patience=-1), Keeps())
    assert refused.value.key == "too_slow"


def entry(number: int, action: str = "alloc") -> dict[str, Any]:
    metadata = {"compile_context": "".join(["N", "/A"]), "user_metadata": ""}
    return {"action": action, "addr": 2**46 + number, "size": 512 * number, "stream": 0, "time_us": 2**50 + number, **metadata}


SNAPSHOT: dict[str, Any] = {
    "segments": [
        {
            "device": 0,
            "address": 1 << 40,
            "total_size": 40 << 20,
            "stream": 0,
            "segment_type": "large",
            "segment_pool_id": (0, 0),
            "blocks": [
                {"size": 8 << 20, "requested_size": (8 << 20) - 9, "state": "active_allocated", "frames": []},
                {"size": 32 << 20, "requested_size": 0, "state": "inactive", "frames": []},
            ],
        }
    ],
    "device_traces": [[entry(number) for number in range(1, 3000)], [entry(3, "free_completed")], []],
    "allocator_settings": {"expandable_segments": False},
}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_shapes_read_as_opcodes_do(protocol: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The short cut for dicts that look alike must not change a figure."""
    data = pickle.dumps(SNAPSHOT, protocol)
    fast = read(Source.text(data))
    monkeypatch.setattr(pickle_reader, "SHAPES", 0)
    assert read(Source.text(data)) == fast
    assert fast.history is not None and fast.history.count == 2999
    assert fast.devices == (0, 1) and fast.reserved == 40 << 20 and fast.free == 32 << 20


class Unbatched(pickle._Pickler):
    """Lists and dicts in one piece, as torch's own pickler writes them (torch/csrc/jit/serialization/pickler.cpp)."""

    _BATCHSIZE = 10**9


def test_lists_without_batches_read_the_same() -> None:
    """A snapshot that C++ writes puts a whole history on the stack before it closes the list."""
    written = io.BytesIO()
    Unbatched(written, 2).dump(SNAPSHOT)
    assert read(Source.text(written.getvalue(), "s")).history == read(Source.text(pickle.dumps(SNAPSHOT), "s")).history


def test_what_is_remembered_after_it_is_complete() -> None:
    """torch's own pickler writes the memo of a dict behind it; of one that was taken in there is nothing to remember."""
    frame = b"}(X\x04\x00\x00\x00nameX\x01\x00\x00\x00fX\x08\x00\x00\x00filenameX\x04\x00\x00\x00a.pyX\x04\x00\x00\x00lineK\x05uq\x01"
    oom = b"}(X\x06\x00\x00\x00actionX\x03\x00\x00\x00oomX\x04\x00\x00\x00sizeM\x00\x02X\x06\x00\x00\x00frames](%bh\x01euq\x02" % frame
    found = read(Source.text(b"\x80\x02}(X\x0d\x00\x00\x00device_traces](](%beeu." % oom))
    assert found.failure is not None and len(found.failure.frames) == 2 and found.failure.frames[0].file == "a.py"


def test_texts_of_a_shape_can_be_referred_to_later() -> None:
    """What a shape skips is still in the memo: the same text object may stand in a later place of the file."""
    entries = [entry(number) for number in range(50)]
    shared = {"segments": [], "device_traces": [entries], "names": [each["compile_context"] for each in entries]}
    assert read(Source.text(pickle.dumps(shared, 4))).history is not None


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_damage_never_crashes(data: st.DataObject) -> None:
    """Bits turned, pieces cut out, repeated or cut off: a snapshot or one sentence, whatever comes of it."""
    raw = bytearray(SMALL)
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(raw) - 1))
        what = data.draw(st.sampled_from(["turn", "cut", "drop", "repeat"]))
        if what == "turn":
            raw[at] = data.draw(st.integers(0, 255))
        elif what == "cut":
            del raw[at:]
        elif what == "drop":
            del raw[at : at + data.draw(st.integers(1, 40))]
        else:
            raw[at:at] = raw[at : at + data.draw(st.integers(1, 200))]
        raw = raw or bytearray(b"\x80")
    assert "\n" not in sentence(bytes(raw))


SMALL = pickle.dumps({**SNAPSHOT, "device_traces": [[entry(number) for number in range(1, 40)]]}, 4)


@given(st.binary(max_size=200))
def test_anything_is_read_or_refused(body: bytes) -> None:
    """Opcodes at random."""
    assert "\n" not in sentence(b"\x80\x04" + body)


@for_each("end", [1, 10, 500, len(SMALL) - 1])
def test_a_snapshot_cut_off_says_so(end: int) -> None:
    """The commonest fault: the job was killed while it wrote."""
    with pytest.raises(UserError):
        read(Source.text(SMALL[:end]))


def test_a_larger_file_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends there with a sentence that says what to do."""
    monkeypatch.setattr(snapshot_limits, "LARGEST", 1 << 20)
    with pytest.raises(UserError, match="max_entries"):
        read(Source.text(pickle.dumps({"segments": [], "x": [os.urandom(1000) for _ in range(3000)]})))
