"""The answer of `check`: the card and the memory left on it, every role, and the frontier as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diagnose.diagnosis import Diagnosis
from diagnose.phrases import Lang
from diagnose.render.parts import advice_text, words
from diagnose.render.parts.words import comma, word
from diagnose.render.parts.wrapping import Page, cells, pad, wrap
from diagnose.units import Size, show

if TYPE_CHECKING:
    from diagnose.plan.remedies.outlook_values import Outlook, Reach, Seat, Way


def room_lines(diagnosis: Diagnosis, lang: Lang) -> list[str]:
    """Sentences on the card, the usable memory, the safety margin, and what is left or missing."""
    outlook = diagnosis.outlook
    if outlook is None or not outlook.seats or outlook.capacity is None or outlook.usable is None:
        return []
    only = outlook.seats[0]
    if len(outlook.seats) == 1 and only.holds is not None and only.usable is not None:
        return engine_lines(outlook, only, lang)
    limit = Size.exactly(round((1 - outlook.kept) * outlook.usable.bytes))
    reserved = outlook.reserved if outlook.reserved is not None and outlook.reserved.bytes > 0 else None
    card = word(
        "check_room",
        lang,
        card=outlook.card or word("check_card", lang),
        capacity=words.amount(outlook.capacity, lang),
        reserved=word("check_reserved", lang, size=words.amount(reserved, lang)) if reserved else "",
        share=f"{outlook.kept:.0%}",
        limit=show(limit.bytes),
    )
    return [words.sentence(card, lang), *margin_lines(outlook, lang)]


def engine_lines(outlook: Outlook, seat: Seat, lang: Lang) -> list[str]:
    """What an engine has of its card, and how many requests its cache holds."""
    holds = seat.holds
    if holds is None or seat.usable is None or outlook.capacity is None:
        return []
    name = outlook.card or word("check_card", lang)
    card = word(
        "check_engine",
        lang,
        card=name,
        capacity=words.amount(outlook.capacity, lang),
        room=size_range(seat.usable.low, seat.usable.high, lang),
    )
    most = f"{max(int(holds.low), 0):,}", f"{max(int(holds.high), 0):,}"
    count = most[0] if most[0] == most[1] else word("range", lang, low=most[0], high=most[1])
    held = word("check_holds", lang, count=count, length=f"{holds.length:,}", tokens=f"{int(holds.likely * holds.length):,}")
    return [words.sentence(card, lang), words.sentence(held, lang)]


def margin_lines(outlook: Outlook, lang: Lang) -> list[str]:
    """The memory left or missing: of the only role, or for each."""
    if len(outlook.seats) == 1:
        only = outlook.seats[0]
        return [words.sentence(word("check_says", lang, margin=margin_text(only, lang)), lang)] if only.margin else []
    lines = []
    for seat in outlook.seats:
        role = words.name_of("role", seat.role, lang)
        is_known = seat.margin is not None and seat.need is not None and seat.need.bytes > 0
        lines.append(f"{role}{words.colon(lang)}{margin_text(seat, lang) if is_known else word('check_role_unknown', lang)}")
    return lines


def margin_text(seat: Seat, lang: Lang) -> str:
    """The range of memory left, if the ledger is complete."""
    free = seat.margin
    if free is None:
        raise ValueError("a seat without a margin")
    if not seat.complete:
        return (
            word("check_margin_open", lang, size=show(max(free.high, 0)))
            if free.high > 0
            else word("check_missing_least", lang, size=show(-free.high))
        )
    if free.low >= 0:
        return word("check_margin", lang, size=size_range(free.low, free.high, lang))
    if free.high <= 0:
        return word("check_missing", lang, size=size_range(-free.high, -free.low, lang))
    return word("check_either", lang, missing=show(-free.low), free=show(free.high))


def size_range(low: int, high: int, lang: Lang) -> str:
    """A range in GiB; one figure if both ends print alike."""
    first, last = show(low), show(high)
    if first == last:
        return first
    if first.partition(" ")[2] == last.partition(" ")[2]:
        first = first.partition(" ")[0]
    return word("range", lang, low=first, high=last)


# -- the frontier


def title(diagnosis: Diagnosis, lang: Lang) -> str:
    """The table's caption: rows at which length, or tokens at which number of rows."""
    outlook = diagnosis.outlook
    if outlook is None:
        raise ValueError("a diagnosis without an outlook")
    base = outlook.ways[0]
    if base.batch is None and base.length is None:
        return word("frontier_cards" if any(way.card for way in outlook.ways) else "frontier_needs", lang)
    tokens = base.length.now if base.length else None
    rows = base.batch.now if base.batch else None
    kind = "tokens" if base.batch is not None and base.batch.least > 1 else "rows"
    length_key = "frontier_at_completion" if counts_completions(base) else "frontier_at_length"
    conditions = [word(length_key, lang, tokens=f"{tokens:,}")] if tokens and base.batch and kind == "rows" else []
    conditions += (
        [word("frontier_at_rows" if rows > 1 else "frontier_at_row", lang, rows=rows)] if rows and base.length and kind == "rows" else []
    )
    return word("frontier", lang) + (words.bracketed(comma(lang).join(conditions), lang) if conditions else "")


def counts_completions(base: Way) -> bool:
    return base.length is not None and base.length.knob == "rollout.completion_len"


def table_cells(diagnosis: Diagnosis, lang: Lang) -> list[list[str]]:
    """The frontier as rows of cells: headings, then one row for each way."""
    outlook = diagnosis.outlook
    if outlook is None or not outlook.ways or (len(outlook.ways) == 1 and not is_measured(outlook.ways[0])):
        return []
    base = outlook.ways[0]
    heads = ["frontier_with", "frontier_need"]
    batch, length = base.batch is not None, base.length is not None
    has_cards = not batch and not length and any(way.card for way in outlook.ways)
    heads += ["frontier_budget" if base.batch and base.batch.least > 1 else "frontier_batch"] if batch else []
    heads += ["frontier_completion" if counts_completions(base) else "frontier_length"] if length else []
    heads += ["frontier_card"] if has_cards else []
    lines = [[word(name, lang) for name in [*heads, "frontier_cost"]]]
    for way in outlook.ways:
        line = [way_name(way, lang), words.figure(way.need) if way.need else ""]
        line += [reach_text(way.batch, lang)] if batch else []
        line += [reach_text(way.length, lang)] if length else []
        line += [word("frontier_gb", lang, gb=way.card) if way.card else "–"] if has_cards else []
        lines.append([*line, cost_text(way, lang)])
    return lines


def is_measured(way: Way) -> bool:
    reaches = [reach for reach in (way.batch, way.length) if reach is not None]
    return any(reach.likely for reach in reaches) or (bool(reaches) and way.need is not None) or way.card is not None


def notes(diagnosis: Diagnosis, lang: Lang) -> list[str]:
    """Explanations of the signs that the table uses."""
    outlook = diagnosis.outlook
    if outlook is None or not table_cells(diagnosis, lang):
        return []
    reaches = [far for way in outlook.ways for far in (way.batch, way.length) if far is not None]
    lines = [word("frontier_range", lang)] if any(far.sure != far.likely for far in reaches) else []
    lines += [word(f"frontier_limit_{limit}", lang) for limit in ("model", "search") if any(far.limit == limit for far in reaches)]
    if outlook.uncounted and reaches:
        roles = comma(lang).join(words.name_of("role", role, lang) for role in outlook.uncounted)
        lines.append(word("frontier_uncounted", lang, roles=roles))
    if reaches and len(outlook.seats) > 1 and any(seat.role == "engine" for seat in outlook.seats):
        lines.append(word("frontier_engine", lang))
    return lines


def way_name(way: Way, lang: Lang) -> str:
    """A way by its remedies (on or off) and the value of its dial."""
    if way.without:
        return word("frontier_without", lang, name=" + ".join(words.name_of("remedy", remedy_id, lang) for remedy_id in way.without))
    to = {remedy: words.bracketed(words.value_text(value, lang), lang) for remedy, value in way.dials}
    return " + ".join(words.name_of("remedy", remedy_id, lang) + to.get(remedy_id, "") for remedy_id in way.remedies) or word(
        "frontier_as_is", lang
    )


def reach_text(limits: Reach | None, lang: Lang) -> str:
    """A reach as the range from what surely fits to what likely fits; `+` if the search ended before memory did."""
    if limits is None:
        return word("unknown", lang)
    if not limits.likely:
        return word("frontier_none", lang)
    mark = "+" if limits.limit else ""
    return f"{limits.likely:,}{mark}" if limits.sure == limits.likely else f"{limits.sure:,}–{limits.likely:,}{mark}"


def cost_text(way: Way, lang: Lang) -> str:
    """A price in the width of a column."""
    if not way.remedies and not way.without:
        return ""
    parts = [] if way.results == "keep" else [word(f"frontier_{way.results}", lang)]
    parts += [] if way.speed == "same" else [word(f"speed_{way.speed}", lang)]
    if way.host_memory is not None:
        parts.append(word("frontier_host", lang, size=show(way.host_memory.bytes)))
    return comma(lang).join(parts) or word("frontier_free", lang)


def append(page: Page, diagnosis: Diagnosis, lang: Lang, *, edits: bool) -> None:
    """Append the table to a terminal page, with the edits of each way on request."""
    lines = table_cells(diagnosis, lang)
    if not lines or diagnosis.outlook is None:
        return
    page.heading(title(diagnosis, lang))
    figures = [max(cells(line[at]) for line in lines) for at in range(1, len(lines[0]) - 1)]
    available = page.width - 2 - sum(width + 2 for width in figures) - 2
    last = min(max(cells(line[-1]) for line in lines), max(available * 2 // 5, 10))
    first = min(max(cells(line[0]) for line in lines), available - last)
    for number, line in enumerate(lines):
        names, costs = wrap(line[0], first, others="  "), wrap(line[-1], last)
        for at in range(max(len(names), len(costs))):
            middle = [pad(text if at == 0 else "", width, right=True) for text, width in zip(line[1:-1], figures, strict=True)]
            whole = [pad(names[at] if at < len(names) else "", first), *middle, costs[at] if at < len(costs) else ""]
            page.row("  " + "  ".join(whole))
        if edits and number:
            for change in diagnosis.outlook.ways[number - 1].edits:
                page.say(advice_text.placed_edit(change, diagnosis, lang), "      ", "        ", "edit")
    for note in notes(diagnosis, lang):
        page.say(note, "  ", style="dim")
