"""The bytes of a file in pieces that opcodes can be read from."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from diagnose.snapshot.snapshot_limits import LARGEST, PATIENCE, Refused

if TYPE_CHECKING:
    from typing import BinaryIO

CHUNK = 1 << 20
SPARE = 16  # no opcode's fixed argument is longer


class Feed:
    """The bytes of a file in pieces that opcodes can be read from."""

    def __init__(self, opened: BinaryIO, patience: float = PATIENCE) -> None:
        self._opened, self._until = opened, monotonic() + patience
        self.count, self.ended = 0, False

    def more(self, data: bytes, at: int, least: int = SPARE) -> bytes:
        """What of `data` is still to be read, followed by more: `least` bytes at least, or all that there are with zeros behind."""
        parts, have = [data[at:]], len(data) - at
        while have < least and not self.ended:
            part = self._opened.read(CHUNK) or b""
            self.count += len(part)
            self.ended = not part
            if self.count > LARGEST:
                raise Refused("too_large", most=LARGEST >> 30)
            if monotonic() > self._until:
                raise Refused("too_slow", seconds=int(PATIENCE))
            parts.append(part)
            have += len(part)
        if self.ended:
            parts.append(bytes(SPARE))  # an opcode 0 does not exist: that is how the loop notices the end
        return b"".join(parts)
