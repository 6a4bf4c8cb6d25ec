"""Limits on reading a memory snapshot, the reader that keeps them, and the errors that report them."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from diagnose.errors import UserError
from diagnose.phrases import phrase

if TYPE_CHECKING:
    from typing import BinaryIO

LARGEST = 8 << 30  # bytes of one uncompressed pickle
PATIENCE = 600.0  # seconds for reading it
TEXT = 1 << 20  # bytes of one text
DIGITS = 16  # bytes of one integer
STACK = 16_000_000  # values on the unpickler's stack: torch's own pickler puts a whole trace there before it closes the list
MEMO = 2_000_000  # values in the unpickler's memo
CONTAINERS = 8_000_000  # memory of containers and texts, in units of about 64 bytes
DEPTH = 64  # nesting of containers: a snapshot has nine levels
BLOCKS = 8_000_000  # blocks of all segments together
SEGMENTS = 2_000_000
TAIL = 4_096  # latest large allocations kept of a device's history
CHUNK = 1 << 20  # bytes read at once
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
        self._file, self._deadline = file, monotonic() + patience
        self.bytes_read, self.is_at_end = 0, False

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
            if monotonic() > self._deadline:
                raise UnreadableSnapshot("too_slow", seconds=int(PATIENCE))
            chunks.append(chunk)
            length += len(chunk)
        if self.is_at_end:
            chunks.append(bytes(PADDING))  # no opcode is 0: the unpickler detects the end by it
        return b"".join(chunks)
