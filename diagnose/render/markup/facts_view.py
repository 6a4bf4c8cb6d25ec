"""Output of `oomdoctor facts`: events, facts and knobs, each with its line or key."""

from __future__ import annotations

from diagnose.diagnosis import Diagnosis
from diagnose.facts import Fact, FactBook, declared
from diagnose.phrases import Lang
from diagnose.render.markup.markdown import code, escape
from diagnose.render.parts import words
from diagnose.render.parts.strings import escaped, harmless, map_texts, one_line
from diagnose.render.parts.view import PLAIN, View
from diagnose.render.parts.words import word
from diagnose.render.parts.wrapping import Page, cells, clip, pad
from diagnose.render.text import details
from diagnose.render.text.full_text import notices

#: The parts of the report that were read and not concluded.
READ = ("schema", "tool", "inputs", "events", "facts", "notices")


def as_json(diagnosis: Diagnosis, lang: Lang = "en", _: View = PLAIN) -> str:
    """The sections of the report about the inputs, as JSON."""
    import json

    report = diagnosis.to_dict(lang)
    return escaped(json.dumps({key: report[key] for key in READ}, ensure_ascii=False, indent=2))


def as_text(diagnosis: Diagnosis, lang: Lang = "en", view: View = PLAIN) -> str:
    """Inputs, failures, facts and settings. Without `verbose` only the effective fact of each name."""
    diagnosis = map_texts(diagnosis, harmless)
    page = Page(view.width, view.colour)
    if not diagnosis.facts and not diagnosis.events:
        page.say(word("nothing_read", lang))
    if diagnosis.inputs:
        page.heading(word("inputs", lang))
        for source in diagnosis.inputs:
            description = word("input_line", lang, kind=source.kind, lines=source.lines, bytes=source.bytes, encoding=source.encoding)
            page.say(words.semicolon(lang).join((f"{source.name}{words.colon(lang)}{description}", *source.notes)), "  ", "    ")
    if diagnosis.events:
        page.heading(word("events", lang))
        details.failures(page, diagnosis, lang)
    for title, facts in sections(diagnosis, view):
        if facts:
            page.heading(word(title, lang))
            (settings if title == "knobs" else table)(page, facts, lang, view.verbose)
    notices(page, diagnosis, lang, verbose=view.verbose, with_leading=True)
    return page.text()


def as_markdown(diagnosis: Diagnosis, lang: Lang = "en", view: View = PLAIN) -> str:
    """Facts and settings as tables."""
    diagnosis = map_texts(diagnosis, harmless)
    parts = []
    for title, facts in sections(diagnosis, view):
        rows = [
            f"| {code(fact.name, cell=True)} | {escape(words.value_text(fact.value, lang))} | {escape(origin(fact, lang))} |"
            for fact in facts
        ]
        if rows:
            parts.append("\n".join([f"| {word(title, lang)} | | |", "|---|---|---|", *rows]))
    return "\n\n".join(parts or [word("nothing_read", lang)]) + "\n"


def sections(diagnosis: Diagnosis, view: View) -> list[tuple[str, list[Fact]]]:
    """Facts of the run, then settings. The effective fact of each name comes first; overridden ones only with `verbose`."""
    book = FactBook(diagnosis.facts)
    facts = [fact for fact in diagnosis.facts if view.verbose or book.fact(fact.name) is fact]
    return [("facts", [fact for fact in facts if not _is_setting(fact)]), ("knobs", [fact for fact in facts if _is_setting(fact)])]


def _is_setting(fact: Fact) -> bool:
    """Whether the fact is a setting, or a quantity computed from settings."""
    entry = declared(fact.name)
    if entry is None:
        return False
    return entry.is_knob or (fact.origin == "derived" and entry.by == "adapters" and not fact.name.startswith("config."))


def table(page: Page, facts: list[Fact], lang: Lang, verbose: bool) -> None:
    """Rows of name, value and origin; with `verbose` the full text of the witness below."""
    values = [one_line(words.value_text(fact.value, lang)) for fact in facts]
    names = min(max(cells(fact.name) for fact in facts), page.width * 2 // 5)
    figures = min(max(map(cells, values)), page.width * 3 // 10)
    for fact, value in zip(facts, values, strict=True):
        line = f"  {pad(fact.name, names)}  {pad(value, figures)}  "
        page.row(line + _origin_within(fact, lang, page.width - cells(line)))
        if verbose:
            page.say(one_line(fact.witness.text), "      ", style="dim")


def _origin_within(fact: Fact, lang: Lang, room: int) -> str:
    """A fact's origin in at most this many columns; of a long path the end, which has the line number."""
    text = origin(fact, lang)
    if not words.place(fact.witness) or cells(text) <= room:
        return clip(text, room)
    while cells(text) > max(room - 1, 0):
        text = text[1:]
    return f"…{text}"


def settings(page: Page, facts: list[Fact], lang: Lang, verbose: bool) -> None:
    """The settings grouped by the file that sets them; then options, derived values and defaults."""
    names = max(cells(fact.name) for fact in facts)
    names_shown: set[str] = set()
    for title, group in _group_by_origin(facts, lang).items():
        page.say(title, "  ", "    ", style="name")
        keys = [f"{fact.witness.line:>4} {one_line(fact.witness.key)}" if words.place(fact.witness) else "  " for fact in group]
        width = min(max(map(cells, keys)), max(page.width - names - 18, 24))
        for fact, key in zip(group, keys, strict=True):
            value = one_line(words.value_text(fact.value, lang)) + (f" ({word('not_in_effect', lang)})" if fact.name in names_shown else "")
            names_shown |= {fact.name} if verbose else set()
            source = one_line(fact.witness.text) if verbose or fact.origin != "log" else ""
            value += f"  ({source})" if source not in ("", value) else ""
            lead = f"  {pad(key, width)}  {pad(fact.name, names)}  "
            if key.strip() and (cells(key) > width or cells(lead + value) > page.width):  # a long one has a line of its own
                page.row(f"  {key}")
                lead = f"       {pad(fact.name, names)}  "
            page.say(value, lead)


def _group_by_origin(facts: list[Fact], lang: Lang) -> dict[str, list[Fact]]:
    """Facts grouped by origin: options, logs, files, guesses, then defaults."""
    order = ("given", "log", "config", "guessed", "said", "catalogue", "derived", "default")
    groups: dict[str, list[Fact]] = {}
    for fact in sorted(facts, key=lambda fact: (order.index(fact.origin), fact.witness.line)):
        placed = bool(words.place(fact.witness))
        name = f"set_by_{fact.origin if fact.origin in ('log', 'guessed', 'said') else 'file'}" if placed else f"set_by_{fact.origin}"
        groups.setdefault(word(name, lang, file=fact.witness.source if placed else ""), []).append(fact)
    return groups


def origin(fact: Fact, lang: Lang) -> str:
    """The line or key of a fact, or a word for its origin."""
    witness = fact.witness
    if place := words.place(witness):
        return f"{place} {witness.key}".rstrip()
    source = word(f"origin_{witness.source}", lang) if witness.source in ("catalogue", "default", "given", "derived") else witness.source
    return f"{source}{words.colon(lang)}{one_line(witness.text)}" if witness.text else source
