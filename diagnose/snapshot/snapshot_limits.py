"""Limits on reading a memory snapshot, the reader that keeps them, and the errors that report them."""

from __future__ import annotations

import time
from time import monotonic
from typing import TYPE_CHECKING

from diagnose.errors import UserError
from diagnose.phrases import phrase

#: Processor time; in WebAssembly, which has one thread and no such clock, time that passes.
thread_time = getattr(time, "thread_time", monotonic)

if TYPE_CHECKING:
    from typing import BinaryIO

LARGEST = 8 << 30  # bytes of one uncompressed pickle
PATIENCE = 600.0  # seconds for reading it
WORK, WORK_PER_BYTE = (
    2.0,
    1 / (1 << 20),
)  # seconds of processor time at least, and for each byte read: five times what the slowest form takes
MEMORY = 256 << 20  # bytes of all that is kept while it is read, by the sizes below
IDLE, IDLE_PER_DICT = 16 << 20, 4 << 10  # bytes read without a part of a snapshot, at least and for each part: a frame, a block, an entry
TEXT = 1 << 20  # bytes of one text
DIGITS = 16  # bytes of one integer
DEPTH = 64  # nesting of containers: a snapshot has nine levels
DEVICES = 1_024  # numbers of devices
POOLS = 1_024  # pools of one device: stream, size class and private pool
FRAMES, FRAME_TEXT = 1_000, 1_024  # innermost frames kept of a stack, characters kept of a frame's file and of its function
TAIL = 4_096  # latest large allocations kept of a device's history
CHUNK = 1 << 18  # bytes read at once: between two reads no limit of memory or time is checked
PADDING = 16  # zero bytes after the end of the file: no opcode's fixed argument is longer


class UnreadableSnapshot(Exception):
    """A pickle that is refused: the key of its sentence in rules/phrases/snapshot.yaml, and the values for it."""

    def __init__(self, key: str, **values: object) -> None:
        super().__init__(key, values)
        self.key, self.values = key, values


def snapshot_error(key: str, where: str, hint: str = "dump_again", **values: object) -> UserError:
    """A UserError with the sentences `key` and `hint` of rules/phrases/snapshot.yaml."""
    return UserError(phrase(f"snapshot.{key}", **values), where, phrase(f"snapshot.{hint}"))


class BoundedReader:
    """Reads a file in chunks that opcodes can be decoded from, up to `LARGEST` bytes and for `patience` seconds."""

    def __init__(self, file: BinaryIO, patience: float = PATIENCE) -> None:
        self._file, self._deadline, self._work_start = file, monotonic() + patience, thread_time()
        self.bytes_read, self.is_at_end = 0, False

    def check_time(self) -> None:
        """Raises UnreadableSnapshot if reading took too long, or more work than so many bytes can be worth."""
        seconds = WORK + WORK_PER_BYTE * self.bytes_read
        if thread_time() - self._work_start > seconds:
            raise UnreadableSnapshot("too_slow", seconds=int(seconds))
        if monotonic() > self._deadline:
            raise UnreadableSnapshot("too_slow", seconds=int(PATIENCE))

    def refill(self, data: bytes, position: int, least: int = PADDING) -> bytes:
        """`data` from `position` on, extended to at least `least` bytes; at the end of the file all that is left, padded with zeros.

        Raises UnreadableSnapshot at the limits.
        """
        chunks, length = [data[position:]], len(data) - position
        while length < least and not self.is_at_end:
            chunk = self._file.read(CHUNK) or b""
            self.bytes_read += len(chunk)
            self.is_at_end = not chunk
            if self.bytes_read > LARGEST:
                raise UnreadableSnapshot("too_large", most=LARGEST >> 30)
            self.check_time()
            chunks.append(chunk)
            length += len(chunk)
        if self.is_at_end:
            chunks.append(bytes(PADDING))  # no opcode is 0: the unpickler detects the end by it
        return b"".join(chunks)
