"""A set that forgets what was put in, but never that it was: a question that it answers with no needs no database."""

from __future__ import annotations

from hashlib import blake2b

BITS = 1 << 24  # 2 MiB, whatever is put in: of a million keys it takes one in seventy that is none for one of them


class Perhaps:
    """Keys that may have been added (a Bloom filter of two hashes): all that were, and few others."""

    def __init__(self) -> None:
        self._bits = bytearray(BITS // 8)

    def add(self, key: str) -> None:
        for at in _places(key):
            self._bits[at >> 3] |= 1 << (at & 7)

    def __contains__(self, key: str) -> bool:
        return all(self._bits[at >> 3] & 1 << (at & 7) for at in _places(key))


def _places(key: str) -> tuple[int, int]:
    told = int.from_bytes(blake2b(key.encode(errors="surrogatepass"), digest_size=8).digest())
    return told % BITS, (told >> 32) % BITS
