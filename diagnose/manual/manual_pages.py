"""Write the manual in docs/generated from the rules; `oomdoctor rules show` prints the same blocks.

Each word of the vocabulary has a page with all its rules, since readers come with the word that a report printed. Links name a rule by
the fragment after `#`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from diagnose.manual import cause_pages, manual_contents, reference_pages, remedy_pages
from diagnose.manual.blocks import Block, Heading, Items, Paragraph, code, link, markdown, quoted
from diagnose.manual.rule_index import LANGS, WORD_FIELD, Entry, PageAddress, Room, RuleIndex, load_index, rule_page
from diagnose.manual.rule_wording import capitalize, join_words, phrase_or, tr
from diagnose.phrases import Lang

#: First line of every page. Only files that begin with it are ever deleted.
MARK = "<!-- written by `oomdoctor rules docs`: edit rules/ instead -->"

_SECTION = {"causes": cause_pages.section, "remedies": remedy_pages.section}


def write(folder: Path, folders: Sequence[Path] = ()) -> int:
    """Write all pages under `folder` and delete generated ones that are obsolete; returns the number of pages."""
    texts = pages(folders)
    for stale in folder.rglob("*.md"):
        if stale.relative_to(folder).as_posix() not in texts and stale.read_text(encoding="utf-8", errors="replace").startswith(MARK):
            stale.unlink()
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return len(texts)


def pages(folders: Sequence[Path] = ()) -> dict[str, str]:
    """The pages of the manual in both languages, by their path in its folder."""
    index = load_index(folders)
    return {address.file: f"{MARK}\n\n{markdown(blocks)}" for lang in LANGS for address, blocks in _all_pages(index, lang)}


def _all_pages(index: RuleIndex, lang: Lang) -> Iterator[tuple[PageAddress, list[Block]]]:
    front = PageAddress(lang, "README.md")
    yield front, [*_page_head(tr("manual", lang), front), *manual_contents.contents(index, front)]
    for name, blocks in (
        ("facts", reference_pages.fact_blocks(lang)),
        ("knobs", reference_pages.knob_blocks(lang)),
        ("models", reference_pages.model_blocks(lang)),
        ("cards", reference_pages.card_blocks(lang)),
    ):
        address = PageAddress(lang, f"{name}.md")
        yield address, [*_page_head(tr(name, lang), address), *blocks]
    for room in WORD_FIELD:
        for word in index.words(room):
            address = PageAddress(lang, rule_page(room, word))
            head = [*_page_head(_word_title(room, word, lang), address), *_introduction(room, word, index, address)]
            yield address, [*head, *_rule_sections(index.for_word(room, word), index, address)]


def article(name: str, lang: Lang, folders: Sequence[Path] = ()) -> list[Block]:
    """The blocks about a rule, or about all rules of a word; empty for an unknown name."""
    index = load_index(folders)
    blocks: list[Block] = []
    for room in WORD_FIELD:
        entries = [entry for entry in index.matching(name) if entry.room == room]
        if entries:
            address = PageAddress(lang, rule_page(room, entries[0].word))
            introduction = _introduction(room, entries[0].word, index, address, with_contents=False)
            blocks += [Heading(1, _word_title(room, entries[0].word, lang)), *introduction, *_rule_sections(entries, index, address)]
    return blocks


def title_of(entry: Entry, lang: Lang) -> str:
    """A rule's title; rules of users may have one title for both languages."""
    title = entry.raw["title"]
    return title if isinstance(title, str) else str(title[lang])


def _word_title(room: Room, word: str, lang: Lang) -> str:
    return (
        phrase_or("manual", f"cause_{word}", word, lang)
        if room == "causes"
        else capitalize(phrase_or("render", f"remedy_{word}", word, lang))
    )


def _page_head(name: str, address: PageAddress) -> list[Block]:
    links = [link(tr("other_language", address.lang), address.translated())]
    if address.path != "README.md":
        links.insert(0, link(tr("manual", address.lang), address.link_to("README.md")))
    return [Heading(1, name), Paragraph(" · ".join(links))]


def _introduction(room: Room, word: str, index: RuleIndex, address: PageAddress, *, with_contents: bool = True) -> Iterator[Block]:
    """The meaning of a word, the causes that list it, and links to its rules."""
    lang = address.lang
    meaning = phrase_or("manual", f"means_{word}", "", lang)
    if meaning and room == "causes":
        yield Paragraph(meaning)
    yield Paragraph(tr(f"spoken_{room}", lang, word=code(word)))
    causes = index.causes_with_remedy(word) if room == "remedies" else []
    if causes:
        links = [link(_word_title("causes", cause, lang), address.link_to(rule_page("causes", cause))) for cause in causes]
        yield Paragraph(tr("helps", lang, causes=join_words(links, lang)))
    entries = index.for_word(room, word)
    if with_contents and len(entries) > 1:
        yield Items(tuple(link(quoted(title_of(entry, lang)), f"#{entry.id}") for entry in entries))


def _rule_sections(entries: Sequence[Entry], index: RuleIndex, address: PageAddress) -> Iterator[Block]:
    for entry in entries:
        yield Heading(2, quoted(title_of(entry, address.lang)), entry.id)
        source = link(code(entry.source), address.repository_link(entry.source)) if entry.ours else code(entry.source)
        trial_note = tr("on_trial", address.lang) if entry.raw.get("status") == "trial" else ""
        yield Paragraph(tr("rule", address.lang, id=code(entry.id), source=source) + trial_note)
        yield from _SECTION[entry.room](entry, index, address)
        if entry.raw.get("references"):
            yield Heading(3, tr("references", address.lang))
            yield Items(tuple(_reference(text, address) for text in entry.raw["references"]))


def _reference(text: str, address: PageAddress) -> str:
    """A link to a public page or to a case of the corpus."""
    return f"<{text}>" if text.startswith("https://") else link(code(text), address.repository_link(text))
