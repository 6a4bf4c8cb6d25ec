"""The commands about the rule base: list, show, check, docs."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from diagnose.phrases import Lang, phrase
from diagnose.surfaces.term import console


def listing(folders: Sequence[str], lang: Lang) -> int:
    """A paragraph per rule: id, title, and in brackets the word it speaks for."""
    from diagnose.manual import manual_pages, rule_shelf
    from diagnose.render.parts.layout import Page
    from diagnose.render.parts.words import bracketed

    view = console.view()
    page = Page(view.width, view.colour)
    for entry in rule_shelf.shelf([Path(folder) for folder in folders]).entries:
        page.say(f"{manual_pages.title_of(entry, lang)}{bracketed(entry.word, lang)}", f"{entry.id}  ", "    ")
    console.say(page.text())
    return 0


def show(name: str, folders: Sequence[str], lang: Lang) -> int:
    """The manual's article on a rule, or on every rule of a cause or remedy. Raises UserError where there is none."""
    from diagnose.manual import manual_pages, rule_shelf
    from diagnose.surfaces.term.manual_text import render_blocks

    paths = [Path(folder) for folder in folders]
    blocks = manual_pages.article(name, lang, paths)
    if not blocks:
        near = difflib.get_close_matches(name, rule_shelf.shelf(paths).names(), 1)
        raise console.trouble("no_such_rule", hint="did_you_mean" if near else "list_rules", name=repr(name), near="".join(near))
    view = console.view()
    console.say(render_blocks(blocks, view.width, view.colour))
    return 0


def docs(folder: str, folders: Sequence[str], lang: Lang) -> int:
    """Writes the manual into a folder."""
    from diagnose.manual import manual_pages

    try:
        count = manual_pages.write(Path(folder), [Path(name) for name in folders])
    except OSError as error:
        raise console.trouble("cannot_write", folder, hint="check_target", why=error.strerror or str(error)) from error
    console.say(phrase("cli.docs_written", count=count, folder=folder).to(lang))
    return 0


def check(folders: Sequence[str], lang: Lang) -> int:
    """Every fault of the rule files, all at once; 0 for none, else 1."""
    from diagnose.manual import rule_shelf
    from diagnose.vet import rule_check

    faults = rule_check.check([Path(folder) for folder in folders])
    for fault in faults:
        console.say(fault.to(lang))
    if faults:
        console.warn(phrase("cli.rules_faults", count=len(faults)).to(lang))
        return 1
    count = len(rule_shelf.shelf([Path(folder) for folder in folders]).entries)
    console.say(phrase("cli.rules_clean", count=count).to(lang))
    return 0
