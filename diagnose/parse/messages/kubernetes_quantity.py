"""Quantities as Kubernetes writes them: Ki, Mi, Gi are binary, k, M, G decimal, m thousandths, nothing bytes."""

from __future__ import annotations

import re
from decimal import Decimal

from diagnose.units import IMPOSSIBLE, Size

_SCALE = {
    **{f"{letter}i": Decimal(1 << 10 * power) for power, letter in enumerate("KMGTPE", start=1)},
    **{letter: Decimal(1000**power) for power, letter in enumerate("kMGTPE", start=1)},
    "m": Decimal(1) / 1000,
    "": Decimal(1),
}


def of(text: str) -> Size | None:
    """The bytes of a quantity such as 64Gi; None for what is none or what no memory can have. A quantity is exact."""
    match = re.fullmatch(r"(\d{1,20}(?:\.\d{1,9})?)([A-Za-z]{0,2})", text)
    scale = _SCALE.get(match[2]) if match else None
    if match is None or scale is None or Decimal(match[1]) * scale > IMPOSSIBLE:
        return None
    count = round(Decimal(match[1]) * scale)
    return Size(count, count, count, text)
