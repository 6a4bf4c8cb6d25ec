"""Rules to pages: the manual in docs/generated, and the same words for `oomdoctor rules show`.

One page for each word of the vocabulary, with every rule that speaks for it: there are 140 rules, most of a page and some of
them five of one kind, and a reader comes with the word that a report printed. An address names the rule behind the #.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from diagnose.manual import catalogue_pages, cause_pages, knob_pages, remedy_pages
from diagnose.manual import manual_contents as contents
from diagnose.manual.blocks import Block, Heading, Items, Paragraph, code, link, markdown, quoted
from diagnose.manual.rule_index import HOME, LANGS, WORD, Entry, Room, Seat, Shelf, page_of, shelf
from diagnose.manual.rule_wording import known_as, listed, say, title
from diagnose.phrases import Lang

__all__ = ["HOME", "Block", "article", "pages", "shelf", "title_of", "write"]

#: The first line of every page. Only files that begin with it are ever removed.
MARK = "<!-- written by `oomdoctor rules docs`: edit rules/ instead -->"

_SECTION = {"causes": cause_pages.section, "remedies": remedy_pages.section}


def write(folder: Path, folders: Sequence[Path] = ()) -> int:
    """Every page under `folder`, and no page of ours that is no longer one; how many there are."""
    wanted = pages(folders)
    for old in folder.rglob("*.md"):
        if old.relative_to(folder).as_posix() not in wanted and old.read_text(encoding="utf-8", errors="replace").startswith(MARK):
            old.unlink()
    for name, text in wanted.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return len(wanted)


def pages(folders: Sequence[Path] = ()) -> dict[str, str]:
    """Every page of the manual by its path in the folder, in both languages."""
    held = shelf(folders)
    return {seat.file: f"{MARK}\n\n{markdown(blocks)}" for lang in LANGS for seat, blocks in _written(held, lang)}


def _written(held: Shelf, lang: Lang) -> Iterator[tuple[Seat, list[Block]]]:
    first = Seat(lang, "README.md")
    yield first, [*_top(say("manual", lang), first), *contents.contents(held, first)]
    for name, blocks in (
        ("facts", knob_pages.dictionary(lang)),
        ("knobs", knob_pages.matrix(lang)),
        ("models", catalogue_pages.models(lang)),
        ("cards", catalogue_pages.cards(lang)),
    ):
        seat = Seat(lang, f"{name}.md")
        yield seat, [*_top(say(name, lang), seat), *blocks]
    for room in WORD:
        for word in held.words(room):
            seat = Seat(lang, page_of(room, word))
            yield seat, [*_top(_name(room, word, lang), seat), *_about(room, word, held, seat), *_rules(held.of(room, word), held, seat)]


def article(name: str, lang: Lang, folders: Sequence[Path] = ()) -> list[Block]:
    """What the manual says of a rule, or of every rule that speaks for a word; empty where nothing is called that."""
    held = shelf(folders)
    blocks: list[Block] = []
    for room in WORD:
        found = [entry for entry in held.called(name) if entry.room == room]
        if found:
            seat = Seat(lang, page_of(room, found[0].word))
            about = _about(room, found[0].word, held, seat, contents=False)
            blocks += [Heading(1, _name(room, found[0].word, lang)), *about, *_rules(found, held, seat)]
    return blocks


def title_of(entry: Entry, lang: Lang) -> str:
    """The rule's title; a rule of the user's may have one for both languages."""
    said = entry.raw["title"]
    return said if isinstance(said, str) else str(said[lang])


def _name(room: Room, word: str, lang: Lang) -> str:
    return known_as("manual", f"cause_{word}", word, lang) if room == "causes" else title(known_as("render", f"remedy_{word}", word, lang))


def _top(name: str, seat: Seat) -> list[Block]:
    ways = [link(say("other_language", seat.lang), seat.translated())]
    if seat.path != "README.md":
        ways.insert(0, link(say("manual", seat.lang), seat.to("README.md")))
    return [Heading(1, name), Paragraph(" · ".join(ways))]


def _about(room: Room, word: str, held: Shelf, seat: Seat, *, contents: bool = True) -> Iterator[Block]:
    """What the word means, which causes name it, and the rules that speak for it."""
    lang = seat.lang
    meaning = known_as("manual", f"means_{word}", "", lang)
    if meaning and room == "causes":
        yield Paragraph(meaning)
    yield Paragraph(say(f"spoken_{room}", lang, word=code(word)))
    helped = held.helped(word) if room == "remedies" else []
    if helped:
        links = [link(_name("causes", cause, lang), seat.to(page_of("causes", cause))) for cause in helped]
        yield Paragraph(say("helps", lang, causes=listed(links, lang)))
    found = held.of(room, word)
    if contents and len(found) > 1:
        yield Items(tuple(link(quoted(title_of(entry, lang)), f"#{entry.id}") for entry in found))


def _rules(found: Sequence[Entry], held: Shelf, seat: Seat) -> Iterator[Block]:
    for entry in found:
        yield Heading(2, quoted(title_of(entry, seat.lang)), entry.id)
        source = link(code(entry.source), seat.outside(entry.source)) if entry.ours else code(entry.source)
        trial = say("on_trial", seat.lang) if entry.raw.get("status") == "trial" else ""
        yield Paragraph(say("rule", seat.lang, id=code(entry.id), source=source) + trial)
        yield from _SECTION[entry.room](entry, held, seat)
        if entry.raw.get("references"):
            yield Heading(3, say("references", seat.lang))
            yield Items(tuple(_reference(text, seat) for text in entry.raw["references"]))


def _reference(text: str, seat: Seat) -> str:
    """A public page, or a case of the corpus."""
    return f"<{text}>" if text.startswith("https://") else link(code(text), seat.outside(text))
