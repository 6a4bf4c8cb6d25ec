"""The contents page: all words of the vocabulary that have rules, and the meanings of the other words of a report."""

from __future__ import annotations

from collections.abc import Iterator

from diagnose import rule_files
from diagnose.manual.blocks import Block, Grid, Heading, Items, Paragraph, code, link
from diagnose.manual.rule_index import PageAddress, Room, RuleIndex, rule_page
from diagnose.manual.rule_wording import capitalize, phrase_or, rule_text, tr


def contents(index: RuleIndex, address: PageAddress) -> Iterator[Block]:
    """Causes with their meaning, remedies by group, then the other words."""
    lang = address.lang
    yield Paragraph(tr("about", lang))
    yield Items(tuple(link(tr(name, lang), address.link_to(f"{name}.md")) for name in ("facts", "knobs", "models", "cards")))
    yield Heading(2, tr("causes", lang), "causes")
    head = tuple(tr(word, lang) for word in ("cause", "word", "meaning", "rules"))
    yield Grid(
        head,
        tuple(
            _cause_row("causes", word, index, address)
            for word in _in_vocabulary_order(index.words("causes"), rule_files.table("vocabulary")["cause"])
        ),
    )
    yield Heading(2, tr("remedies", lang), "remedies")
    remaining = index.words("remedies")
    groups = {**rule_files.table("vocabulary")["remedy"], "other": remaining}
    for group, words in groups.items():
        group_words = [word for word in words if word in remaining]
        remaining = [word for word in remaining if word not in group_words]
        if group_words:
            yield Heading(3, tr(f"group_{group.replace(' ', '_')}", lang))
            yield Items(tuple(_remedy_item(word, index, address) for word in group_words))
    yield from _small_words(address)


def _in_vocabulary_order(words: list[str], vocabulary: list[str]) -> list[str]:
    return [word for word in vocabulary if word in words] + [word for word in words if word not in vocabulary]


def _cause_row(room: Room, word: str, index: RuleIndex, address: PageAddress) -> tuple[str, ...]:
    name = phrase_or("manual", f"cause_{word}", word, address.lang)
    meaning = phrase_or("manual", f"means_{word}", "", address.lang)
    return link(name, address.link_to(rule_page(room, word))), code(word), meaning, str(len(index.for_word(room, word)))


def _remedy_item(word: str, index: RuleIndex, address: PageAddress) -> str:
    name = capitalize(phrase_or("render", f"remedy_{word}", word, address.lang))
    titles = dict.fromkeys(rule_text(entry.raw["title"], address.lang) for entry in index.for_word("remedies", word))
    return f"{link(name, address.link_to(rule_page('remedies', word)))} ({code(word)}): " + " / ".join(titles)


def _small_words(address: PageAddress) -> Iterator[Block]:
    """The report's words for states of causes, remedies, failures and ledgers."""
    lang = address.lang
    vocabulary = rule_files.table("vocabulary")
    yield Heading(2, tr("words_of_a_report", lang), "words")
    for kind in ("status", "certainty", "fits"):
        yield Heading(3, tr(kind, lang))
        yield Items(tuple(tr("pair", lang, left=code(word), right=tr(f"{kind}_{word}", lang)) for word in vocabulary[kind]))
    for kind, room in (("phase", "headline"), ("moment", "headline"), ("role", "render")):
        yield Heading(3, tr(kind, lang))
        yield Items(
            tuple(tr("pair", lang, left=code(word), right=phrase_or(room, f"{kind}_{word}", word, lang)) for word in vocabulary[kind])
        )
