"""A memory snapshot as titled lists of sentences, for text, Markdown and pages."""

from __future__ import annotations

from collections import Counter

from diagnose.diagnosis import Diagnosis
from diagnose.phrases import Lang, phrase
from diagnose.render.parts.words import semicolon
from diagnose.render.parts.wrapping import Page
from diagnose.snapshot.measure import Failure, Pool, Site, Snapshot
from diagnose.snapshot.stack_frames import NO_FRAMES, UNSORTED, Frame
from diagnose.units import show

#: How many places, segments and groups are shown in the text; all of them are in the data.
MOST = 5


def say(key: str, lang: Lang, /, **values: object) -> str:
    """A phrase of rules/phrases/snapshot.yaml."""
    return phrase(f"snapshot.{key}", **values).to(lang)


def titled_lists(diagnosis: Diagnosis, lang: Lang, short: bool = False) -> list[tuple[str, list[str]]]:
    """Titles with their sentences, the most important first; `short` leaves out what headline and bar tell. Empty without a snapshot."""
    taken = diagnosis.snapshot
    if taken is None:
        return []
    groups = [f"{group(name, lang)} {show(size)}" for name, size in taken.groups[: MOST + 3]]
    fragments = [
        say("fragment", lang, free=show(segment.free), total=show(segment.total), largest=show(segment.largest))
        for segment in taken.fragments
    ]
    latest = [site_line(segment, lang) for segment in taken.history.latest] if taken.history else []
    lists = [
        (say("title", lang), summary_lines(taken, lang, short)),
        (say("groups", lang), groups),
        (say("sites", lang), [site_line(segment, lang) for segment in taken.sites[:MOST]]),
        (say("fragments", lang), count_equal(fragments, lang)[:MOST]),
        (say("lately", lang), count_equal(latest, lang)),
    ]
    return [(title, lines) for title, lines in lists if lines]


def count_equal(lines: list[str], lang: Lang) -> list[str]:
    """Equal lines merged into one with their number."""
    counts = Counter(lines)
    return [line if count == 1 else say("times", lang, what=line, count=count) for line, count in counts.items()]


def summary_lines(taken: Snapshot, lang: Lang, short: bool = False) -> list[str]:
    """Card, request, what blocked it, what its exact size implies, history; `short` without card and history."""
    sizes = {"reserved": show(taken.reserved), "allocated": show(taken.allocated), "free": show(taken.free), "largest": show(taken.largest)}
    lines = [] if short else [say("device", lang, index=taken.device, **sizes)]
    lines += request(taken.failure, lang, short) if taken.failure is not None else [say("no_request", lang)]
    if taken.verdict:
        key = "still_open" if taken.verdict == "open" else taken.verdict
        lines.append(say(key, lang, tensor=taken.tensor) if taken.tensor is not None else say(key, lang))
    if taken.pending:
        lines.append(say("pending", lang, size=show(taken.pending)))
    history = taken.history
    if history is not None and history.count > 1 and not short:
        key = "history" if taken.failure is not None else "history_end"
        lines.append(
            say(key, lang, count=f"{history.count:,}", low=show(history.lowest), high=show(history.highest), last=show(history.last))
        )
    return lines


def request(failed: Failure, lang: Lang, short: bool = False) -> list[str]:
    """The failed request (`short`: only its place), and whether any free block was large enough."""
    size = show(failed.size.high)
    head = say("request_only", lang, size=size)
    if failed.device_free is not None:
        head = say("request", lang, size=size, free=show(failed.device_free))
    if failed.where is not None:
        where = say("asked_at", lang, where=frame_text(failed.where))
        head = where if short else semicolon(lang).join((head, where))
    lines = [head]
    need, free, largest = failed.size.high, failed.pool_free, failed.pool_largest
    if largest >= need:
        lines.append(say("fits_now", lang, size=show(largest)))
    elif free:
        lines.append(say("would_fit" if free >= need else "would_not_fit", lang, free=show(free), largest=show(largest)))
    if failed.elsewhere is not None:
        lines.append(say("fits_elsewhere", lang, size=show(failed.elsewhere.largest), owner=owner(failed.elsewhere, lang)))
    if failed.freed_since:
        lines.append(say("freed_since", lang, size=show(failed.freed_since)))
    return lines


def owner(pool: Pool, lang: Lang) -> str:
    return say("private_pool", lang) if pool.private else say("stream", lang, number=pool.stream)


def group(name: str, lang: Lang) -> str:
    if name in (UNSORTED, NO_FRAMES):
        return say(name, lang)
    return say(f"group_{name}", lang)


def frame_text(place: Frame) -> str:
    """A stack frame on one line, with the end of its path."""
    return f"{'/'.join(place.file.split('/')[-3:])}:{place.line} {place.function}"


def site_line(place: Site, lang: Lang) -> str:
    where = frame_text(place.where) if place.where is not None else say("no_frames", lang)
    kind = say("kind", lang, group=group(place.group, lang)) if place.group not in (UNSORTED, NO_FRAMES) else ""
    return say("site", lang, size=show(place.bytes), where=where, kind=kind)


def append(page: Page, diagnosis: Diagnosis, lang: Lang, *, brief: bool, short: bool = False) -> None:
    """Append to a terminal page: the first list (`short`: cut for one screen), with --verbose all."""
    for title, lines in titled_lists(diagnosis, lang, short)[: 1 if brief else None]:
        page.heading(title)
        for line in lines:
            page.say(line, "  ", "    ")
