"""Before a run: the card and what stays free on it, every role, and the frontier as a small table."""

from __future__ import annotations

from diagnose.diagnosis import Diagnosis
from diagnose.phrases import Lang
from diagnose.plan.rules.outlook import Outlook, Reach, Seat, Way
from diagnose.render.parts import advice_text, words
from diagnose.render.parts.layout import Page, cells, pad, wrap
from diagnose.render.parts.words import comma, word
from diagnose.units import Size, show


def room(diagnosis: Diagnosis, lang: Lang) -> list[str]:
    """Sentences: which card, what torch can have of it, what is kept free, and what stays or is missing."""
    seen = diagnosis.outlook
    if seen is None or not seen.seats or seen.capacity is None or seen.usable is None:
        return []
    limit = Size.exactly(round((1 - seen.kept) * seen.usable.bytes))
    apart = seen.reserved if seen.reserved is not None and seen.reserved.bytes > 0 else None
    card = word(
        "check_room",
        lang,
        card=seen.card or word("check_card", lang),
        capacity=words.amount(seen.capacity, lang),
        reserved=word("check_reserved", lang, size=words.amount(apart, lang)) if apart else "",
        share=f"{seen.kept:.0%}",
        limit=show(limit.bytes),
    )
    return [words.sentence(card, lang), *margins(seen, lang)]


def margins(seen: Outlook, lang: Lang) -> list[str]:
    """What stays free or is missing: of the only role, or of each."""
    if len(seen.seats) == 1:
        only = seen.seats[0]
        return [words.sentence(word("check_says", lang, margin=margin(only, lang)), lang)] if only.margin else []
    said = []
    for seat in seen.seats:
        role = words.name_of("role", seat.role, lang)
        known = seat.margin is not None and seat.need is not None and seat.need.bytes > 0
        said.append(f"{role}{words.colon(lang)}{margin(seat, lang) if known else word('check_role_unknown', lang)}")
    return said


def margin(seat: Seat, lang: Lang) -> str:
    """What stays free between the ends of the estimate, where it is known to the last term."""
    free = seat.margin
    assert free is not None
    if not seat.complete:
        return (
            word("check_margin_open", lang, size=show(max(free.high, 0)))
            if free.high > 0
            else word("check_missing_least", lang, size=show(-free.high))
        )
    if free.low >= 0:
        return word("check_margin", lang, size=between(free.low, free.high, lang))
    if free.high <= 0:
        return word("check_missing", lang, size=between(-free.high, -free.low, lang))
    return word("check_either", lang, missing=show(-free.low), free=show(free.high))


def between(low: int, high: int, lang: Lang) -> str:
    """Two ends in GiB; one figure where both print alike."""
    first, last = show(low), show(high)
    if first == last:
        return first
    if first.partition(" ")[2] == last.partition(" ")[2]:
        first = first.partition(" ")[0]
    return word("range", lang, low=first, high=last)


# -- the frontier


def title(diagnosis: Diagnosis, lang: Lang) -> str:
    """What the columns count: rows at which length, tokens at how many rows."""
    seen = diagnosis.outlook
    assert seen is not None
    base = seen.ways[0]
    if base.batch is None and base.length is None:
        return word("frontier_cards" if any(one.card for one in seen.ways) else "frontier_needs", lang)
    tokens = base.length.now if base.length else None
    rows = base.batch.now if base.batch else None
    kind = "tokens" if base.batch is not None and base.batch.least > 1 else "rows"
    long = "frontier_at_completion" if of_completions(base) else "frontier_at_length"
    held = [word(long, lang, tokens=f"{tokens:,}")] if tokens and base.batch and kind == "rows" else []
    held += (
        [word("frontier_at_rows" if rows > 1 else "frontier_at_row", lang, rows=rows)] if rows and base.length and kind == "rows" else []
    )
    return word("frontier", lang) + (words.bracketed(comma(lang).join(held), lang) if held else "")


def of_completions(base: Way) -> bool:
    return base.length is not None and base.length.knob == "rollout.completion_len"


def columns(diagnosis: Diagnosis, lang: Lang) -> list[list[str]]:
    """The frontier as cells: a line of headings, then a line for each way."""
    seen = diagnosis.outlook
    if seen is None or not seen.ways or (len(seen.ways) == 1 and not measured(seen.ways[0])):
        return []
    base = seen.ways[0]
    heads = ["frontier_with", "frontier_need"]
    batch, length = base.batch is not None, base.length is not None
    carded = not batch and not length and any(one.card for one in seen.ways)
    heads += ["frontier_budget" if base.batch and base.batch.least > 1 else "frontier_batch"] if batch else []
    heads += ["frontier_completion" if of_completions(base) else "frontier_length"] if length else []
    heads += ["frontier_card"] if carded else []
    lines = [[word(name, lang) for name in [*heads, "frontier_cost"]]]
    for one in seen.ways:
        line = [name(one, lang), words.figure(one.need) if one.need else ""]
        line += [reach(one.batch, lang)] if batch else []
        line += [reach(one.length, lang)] if length else []
        line += [word("frontier_gb", lang, gb=one.card) if one.card else "–"] if carded else []
        lines.append([*line, cost(one, lang)])
    return lines


def measured(one: Way) -> bool:
    return one.batch is not None or one.length is not None or one.card is not None


def notes(diagnosis: Diagnosis, lang: Lang) -> list[str]:
    """What the signs in the table mean, as far as they occur in it."""
    seen = diagnosis.outlook
    if seen is None or not columns(diagnosis, lang):
        return []
    reaches = [each for one in seen.ways for each in (one.batch, one.length) if each is not None]
    said = [word("frontier_range", lang)] if any(each.sure != each.likely for each in reaches) else []
    said += [word(f"frontier_limit_{limit}", lang) for limit in ("model", "search") if any(each.limit == limit for each in reaches)]
    if seen.uncounted and reaches:
        roles = comma(lang).join(words.name_of("role", role, lang) for role in seen.uncounted)
        said.append(word("frontier_uncounted", lang, roles=roles))
    if reaches and len(seen.seats) > 1 and any(seat.role == "engine" for seat in seen.seats):
        said.append(word("frontier_engine", lang))
    return said


def name(one: Way, lang: Lang) -> str:
    """The remedies that are on or off; of a dial with its value."""
    if one.without:
        return word("frontier_without", lang, name=" + ".join(words.name_of("remedy", each, lang) for each in one.without))
    to = {remedy: words.bracketed(words.value_text(value, lang), lang) for remedy, value in one.dials}
    return " + ".join(words.name_of("remedy", each, lang) + to.get(each, "") for each in one.remedies) or word("frontier_as_is", lang)


def reach(far: Reach | None, lang: Lang) -> str:
    """The largest value; from the one that surely fits to the one that fits if the estimate is right; `+` where memory did not end it."""
    if far is None:
        return word("unknown", lang)
    if not far.likely:
        return word("frontier_none", lang)
    more = "+" if far.limit else ""
    return f"{far.likely:,}{more}" if far.sure == far.likely else f"{far.sure:,}–{far.likely:,}{more}"


def cost(one: Way, lang: Lang) -> str:
    """What it costs, in as few words as a column has room for."""
    if not one.remedies and not one.without:
        return ""
    parts = [] if one.results == "keep" else [word(f"frontier_{one.results}", lang)]
    parts += [] if one.speed == "same" else [word(f"speed_{one.speed}", lang)]
    if one.host_memory is not None:
        parts.append(word("frontier_host", lang, size=show(one.host_memory.bytes)))
    return comma(lang).join(parts) or word("frontier_free", lang)


def append(page: Page, diagnosis: Diagnosis, lang: Lang, *, edits: bool) -> None:
    """The table for a terminal: figures to the right, names and costs wrapped; with the edits of each way where asked for."""
    lines = columns(diagnosis, lang)
    if not lines or diagnosis.outlook is None:
        return
    page.heading(title(diagnosis, lang))
    figures = [max(cells(line[at]) for line in lines) for at in range(1, len(lines[0]) - 1)]
    left = page.width - 2 - sum(width + 2 for width in figures) - 2
    last = min(max(cells(line[-1]) for line in lines), max(left * 2 // 5, 10))
    first = min(max(cells(line[0]) for line in lines), left - last)
    for number, line in enumerate(lines):
        names, costs = wrap(line[0], first, rest="  "), wrap(line[-1], last)
        for at in range(max(len(names), len(costs))):
            middle = [pad(text if at == 0 else "", width, right=True) for text, width in zip(line[1:-1], figures, strict=True)]
            whole = [pad(names[at] if at < len(names) else "", first), *middle, costs[at] if at < len(costs) else ""]
            page.row("  " + "  ".join(whole))
        if edits and number:
            for change in diagnosis.outlook.ways[number - 1].edits:
                page.say(
                    f"{advice_text.target(change, diagnosis)}{words.colon(lang)}{advice_text.edit(change, lang)}",
                    "      ",
                    "        ",
                    "edit",
                )
    for said in notes(diagnosis, lang):
        page.say(said, "  ", style="dim")
