"""How much may come out of what is packed, and how that is said."""

from __future__ import annotations

from diagnose.errors import UserError
from diagnose.phrases import phrase
from diagnose.record import record

LARGEST = 16 << 30  # bytes of text that everything packed in one job may expand to
STEEP, FREE = 500, 256 << 20  # text per packed byte, once more than this was expanded: logs that repeat themselves reach 300
MEMBERS = 10_000  # files of one archive that are looked at
WINDOW = 128 << 20  # memory that one decompressor may take
SPOOLED = 1 << 30  # a zip from a pipe is put aside up to this size: its directory stands at its end
HEADER = 1 << 20  # bytes of one extended tar header
DIRECTORY = 4 << 20  # bytes of a zip's directory


def trouble(key: str, where: str, hint: str = "unpack_it", **values: object) -> UserError:
    """A complaint whose sentences are in rules/phrases/packed.yaml."""
    return UserError(phrase(f"packed.{key}", **values), where, phrase(f"packed.{hint}", **values), f"packed.{key}")


@record(frozen=False, eq=False)
class Allowance:
    """Bytes of text that may still be expanded."""

    left: int = LARGEST
