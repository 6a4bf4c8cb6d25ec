"""The first page: every word of the vocabulary that has rules, and what the other words of a report mean."""

from __future__ import annotations

from collections.abc import Iterator

from diagnose import rule_files
from diagnose.manual.blocks import Block, Grid, Heading, Items, Paragraph, code, link
from diagnose.manual.rule_index import Room, Seat, Shelf, page_of
from diagnose.manual.rule_wording import known_as, say, text_of, title


def contents(shelf: Shelf, seat: Seat) -> Iterator[Block]:
    """Causes with their meaning, remedies by group, then the small words."""
    lang = seat.lang
    yield Paragraph(say("about", lang))
    yield Items(tuple(link(say(name, lang), seat.to(f"{name}.md")) for name in ("facts", "knobs", "models", "cards")))
    yield Heading(2, say("causes", lang), "causes")
    head = tuple(say(word, lang) for word in ("cause", "word", "meaning", "rules"))
    yield Grid(
        head, tuple(_row("causes", word, shelf, seat) for word in _ordered(shelf.words("causes"), rule_files.table("vocabulary")["cause"]))
    )
    yield Heading(2, say("remedies", lang), "remedies")
    left = shelf.words("remedies")
    groups = {**rule_files.table("vocabulary")["remedy"], "other": left}
    for group, words in groups.items():
        here = [word for word in words if word in left]
        left = [word for word in left if word not in here]
        if here:
            yield Heading(3, say(f"group_{group.replace(' ', '_')}", lang))
            yield Items(tuple(_remedy(word, shelf, seat) for word in here))
    yield from _small_words(seat)


def _ordered(words: list[str], first: list[str]) -> list[str]:
    return [word for word in first if word in words] + [word for word in words if word not in first]


def _row(room: Room, word: str, shelf: Shelf, seat: Seat) -> tuple[str, ...]:
    name = known_as("manual", f"cause_{word}", word, seat.lang)
    meaning = known_as("manual", f"means_{word}", "", seat.lang)
    return link(name, seat.to(page_of(room, word))), code(word), meaning, str(len(shelf.of(room, word)))


def _remedy(word: str, shelf: Shelf, seat: Seat) -> str:
    name = title(known_as("render", f"remedy_{word}", word, seat.lang))
    titles = dict.fromkeys(text_of(entry.raw["title"], seat.lang) for entry in shelf.of("remedies", word))
    return f"{link(name, seat.to(page_of('remedies', word)))} ({code(word)}): " + " / ".join(titles)


def _small_words(seat: Seat) -> Iterator[Block]:
    """Words that a report uses of causes, remedies, the failure and the ledger."""
    lang = seat.lang
    vocabulary = rule_files.table("vocabulary")
    yield Heading(2, say("words_of_a_report", lang), "words")
    for kind in ("status", "certainty", "fits"):
        yield Heading(3, say(kind, lang))
        yield Items(tuple(say("pair", lang, left=code(word), right=say(f"{kind}_{word}", lang)) for word in vocabulary[kind]))
    for kind, room in (("phase", "headline"), ("moment", "headline"), ("role", "render")):
        yield Heading(3, say(kind, lang))
        yield Items(
            tuple(say("pair", lang, left=code(word), right=known_as(room, f"{kind}_{word}", word, lang)) for word in vocabulary[kind])
        )
