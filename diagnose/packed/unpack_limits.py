"""Limits on decompression (zip bombs, endless archives), and the errors that report them."""

from __future__ import annotations

from dataclasses import dataclass

from diagnose.errors import UserError
from diagnose.phrases import phrase

LARGEST = 16 << 30  # bytes of text that all archives of one job may expand to together
STEEP, FREE = 500, 256 << 20  # compression ratio allowed beyond this many bytes of text: repetitive logs reach 300
MEMBERS = 10_000  # files read of one archive
WINDOW = 128 << 20  # memory of one decompressor
SPOOLED = 1 << 30  # bytes of a zip from a pipe that are spooled to disk: its directory is at its end
HEADER = 1 << 20  # bytes of one extended tar header
DIRECTORY = 4 << 20  # bytes of a zip's directory


def unpack_error(key: str, where: str, hint: str = "unpack_it", **values: object) -> UserError:
    """A UserError with the sentences `key` and `hint` of rules/phrases/packed.yaml."""
    return UserError(phrase(f"packed.{key}", **values), where, phrase(f"packed.{hint}", **values), f"packed.{key}")


@dataclass(slots=True, eq=False)
class Allowance:
    """Bytes of text that the inputs of one job may still expand to."""

    remaining: int = LARGEST
