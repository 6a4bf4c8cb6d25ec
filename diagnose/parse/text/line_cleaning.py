"""Remove colours, progress bars and prefixes from a line; cached by the line's shape (all digits replaced by 0)."""

from __future__ import annotations

from functools import lru_cache

from diagnose.parse.text import decoding
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.parse.text.prefixes import NOBODY, SHORT, ZEROS, PeeledLine, Prefix, is_alike, peel, peel_alike

__all__ = ["BAR", "SHORT", "clean", "clean_short", "without_prefixes"]

#: One state of a progress bar, as tqdm ends it; what a process writes next follows on the same line.
BAR = lazy_compile(r"\d{1,12}/(?:\d{1,12}|\?) \[[^\]\n]{0,200}\]")

MOST = 8192  # lines, and kinds of lines, that are remembered
#: Whether all that is to be done to a short line is to peel it, by the line with all digits the same: thousands of lines of a log
#: differ in nothing else.
_BARE: dict[bytes, bool] = {}


def clean(text: str) -> tuple[Prefix, str]:
    """(prefix, text) of a line; of a progress bar its last state, or the text printed behind it."""
    own = without_prefixes(text)
    return own.prefix, own.text


def without_prefixes(text: str) -> PeeledLine:
    """The line without colours, progress bars and prefixes."""
    return _remembered(text) if len(text) < SHORT else _cleaned(text)


def clean_short(raw: bytes) -> PeeledLine:
    """The same for the bytes of a line shorter than SHORT."""
    text, shape = raw.decode("utf-8", "replace"), raw.translate(ZEROS)
    bare = _BARE.get(shape)
    if bare is None:
        if len(_BARE) >= MOST:
            _BARE.clear()
        bare = _BARE[shape] = _is_bare(text)
    return peel_alike(text, shape) if bare else _remembered(text)


def _is_bare(text: str) -> bool:
    """Whether removing the prefixes is all there is to do, whatever the digits: no colour, progress bar or markup."""
    return is_alike(text) and "&#" not in text and not decoding.may_be_coloured(text) and _remembered(text) == peel(text)


def _cleaned(text: str) -> PeeledLine:
    # in JSON colours are escaped and quotation marks mean something: both are seen to behind it
    text = decoding.strip_colours(text) if not decoding.may_be_json(text) else text
    if "\r" not in text:
        own = _peeled(text)
    else:
        states = list(decoding.line_states(text)) or [""]
        own = _peeled(states[-1])
        if len(states) > 1 and own.prefix == NOBODY:
            own = own._replace(prefix=_peeled(states[0][:200]).prefix)
    bars = list(BAR.finditer(own.text)) if "/" in own.text and "[" in own.text else []
    if bars and own.text[bars[-1].end() :].strip():
        inner = _peeled(own.text[bars[-1].end() :])
        own = inner if inner.prefix != NOBODY else own._replace(text=inner.text)
    return own


_remembered = lru_cache(maxsize=MOST)(_cleaned)  # the lines of tracebacks and banners come again in every job of a kind


def _peeled(text: str) -> PeeledLine:
    if not decoding.may_be_json(text):
        return peel(decoding.to_plain_text(text))
    own = peel(bare := text.lstrip())
    if own.text is bare:
        return peel(decoding.to_plain_text(decoding.strip_colours(text)))
    return own._replace(text=decoding.to_plain_text(decoding.strip_colours(own.text)))
