"""What a memory snapshot shows: as titled lists of sentences for text, Markdown and pages."""

from __future__ import annotations

from collections import Counter

from diagnose.diagnosis import Diagnosis
from diagnose.phrases import Lang, phrase
from diagnose.render.parts.layout import Page
from diagnose.render.parts.words import semicolon
from diagnose.snapshot.measure import Failure, Pool, Site, Snapshot
from diagnose.snapshot.stack_frames import NO_FRAMES, UNSORTED, Frame
from diagnose.units import show

#: How many places, segments and groups are shown in the text; all of them are in the data.
MOST = 5


def say(key: str, lang: Lang, /, **values: object) -> str:
    """A phrase of rules/phrases/snapshot.yaml."""
    return phrase(f"snapshot.{key}", **values).to(lang)


def parts(diagnosis: Diagnosis, lang: Lang, short: bool = False) -> list[tuple[str, list[str]]]:
    """Titles and the sentences under them; the first one tells what matters most, `short` without what headline and bar tell.
    Nothing where no snapshot was given."""
    of = diagnosis.snapshot
    if of is None:
        return []
    groups = [f"{group(name, lang)} {show(size)}" for name, size in of.groups[: MOST + 3]]
    fragments = [say("fragment", lang, free=show(each.free), total=show(each.total), largest=show(each.largest)) for each in of.fragments]
    latest = [site(each, lang) for each in of.history.latest] if of.history else []
    lists = [
        (say("title", lang), first(of, lang, short)),
        (say("groups", lang), groups),
        (say("sites", lang), [site(each, lang) for each in of.sites[:MOST]]),
        (say("fragments", lang), folded(fragments, lang)[:MOST]),
        (say("lately", lang), folded(latest, lang)),
    ]
    return [(title, lines) for title, lines in lists if lines]


def folded(lines: list[str], lang: Lang) -> list[str]:
    """Equal lines as one that counts them."""
    counts = Counter(lines)
    return [line if count == 1 else say("times", lang, what=line, count=count) for line, count in counts.items()]


def first(of: Snapshot, lang: Lang, short: bool = False) -> list[str]:
    """The card, the request, what stood in its way, what the exact size says, the history; `short` without the card and the history."""
    sizes = {"reserved": show(of.reserved), "allocated": show(of.allocated), "free": show(of.free), "largest": show(of.largest)}
    lines = [] if short else [say("device", lang, index=of.device, **sizes)]
    lines += request(of.failure, lang, short) if of.failure is not None else [say("no_request", lang)]
    if of.verdict:
        key = "still_open" if of.verdict == "open" else of.verdict
        lines.append(say(key, lang, tensor=of.tensor) if of.tensor is not None else say(key, lang))
    if of.pending:
        lines.append(say("pending", lang, size=show(of.pending)))
    told = of.history
    if told is not None and told.count > 1 and not short:
        key = "history" if of.failure is not None else "history_end"
        lines.append(say(key, lang, count=f"{told.count:,}", low=show(told.lowest), high=show(told.highest), last=show(told.last)))
    return lines


def request(failed: Failure, lang: Lang, short: bool = False) -> list[str]:
    """The failed request (`short` only where it was made) and whether a free piece would have held it."""
    size = show(failed.size.high)
    head = say("request_only", lang, size=size)
    if failed.device_free is not None:
        head = say("request", lang, size=size, free=show(failed.device_free))
    if failed.where is not None:
        where = say("asked_at", lang, where=named(failed.where))
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


def named(place: Frame) -> str:
    """A frame on one line, by the end of its path."""
    return f"{'/'.join(place.file.split('/')[-3:])}:{place.line} {place.function}"


def site(of: Site, lang: Lang) -> str:
    where = named(of.where) if of.where is not None else say("no_frames", lang)
    known = say("kind", lang, group=group(of.group, lang)) if of.group not in (UNSORTED, NO_FRAMES) else ""
    return say("site", lang, size=show(of.bytes), where=where, kind=known)


def append(page: Page, diagnosis: Diagnosis, lang: Lang, *, brief: bool, short: bool = False) -> None:
    """What it shows in a terminal: the first list (`short` what a full screen has room for), and with --verbose the others."""
    for title, lines in parts(diagnosis, lang, short)[: 1 if brief else None]:
        page.heading(title)
        for line in lines:
            page.say(line, "  ", "    ")
