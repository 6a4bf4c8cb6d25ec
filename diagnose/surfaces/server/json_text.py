"""JSON as clients send it: escapes of half a surrogate pair, which Python's own `json` writes and other parsers refuse."""

from __future__ import annotations

import re

#: An escape of half a surrogate pair (group 1) among the others: pairs, and everything else behind a backslash.
HALF = r"u[dD][89a-fA-F][0-9a-fA-F]{2}"
ESCAPE = re.compile(rf"\\(?:u[dD][89abAB][0-9a-fA-F]{{2}}\\u[dD][c-fC-F][0-9a-fA-F]{{2}}|({HALF})|.)".encode(), re.DOTALL)
SUSPECT = re.compile(rf"\\{HALF}".encode())


def without_lone_surrogates(text: bytes) -> bytes:
    """The same JSON, as long as before, with U+FFFD for each half of a pair that stands alone: no text in UTF-8 can hold it."""
    if SUSPECT.search(text) is None:
        return text
    return ESCAPE.sub(lambda match: rb"\ufffd" if match[1] else match[0], text)
