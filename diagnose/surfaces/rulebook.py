"""The commands about the rule base: list, show, check, docs."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from diagnose.phrases import Lang, phrase
from diagnose.surfaces import speak


def listing(folders: Sequence[str], lang: Lang) -> int:
    """A paragraph per rule: id, title, and in brackets the word it speaks for."""
    from diagnose import manual
    from diagnose.render.layout import Page
    from diagnose.render.words import bracketed

    view = speak.view()
    page = Page(view.width, view.colour)
    for entry in manual.shelf([Path(folder) for folder in folders]).entries:
        page.say(f"{manual.title_of(entry, lang)}{bracketed(entry.word, lang)}", f"{entry.id}  ", "    ")
    speak.say(page.text())
    return 0


def show(name: str, folders: Sequence[str], lang: Lang) -> int:
    """The manual's article on a rule, or on every rule of a cause or remedy. Raises Complaint where there is none."""
    from diagnose import manual
    from diagnose.surfaces.leaf import printed

    paths = [Path(folder) for folder in folders]
    blocks = manual.article(name, lang, paths)
    if not blocks:
        near = difflib.get_close_matches(name, manual.shelf(paths).names(), 1)
        raise speak.trouble("no_such_rule", hint="did_you_mean" if near else "list_rules", name=repr(name), near="".join(near))
    view = speak.view()
    speak.say(printed(blocks, view.width, view.colour))
    return 0


def docs(folder: str, folders: Sequence[str], lang: Lang) -> int:
    """Writes the manual into a folder."""
    from diagnose import manual

    try:
        count = manual.write(Path(folder), [Path(name) for name in folders])
    except OSError as error:
        raise speak.trouble("cannot_write", folder, hint="check_target", why=error.strerror or str(error)) from error
    speak.say(phrase("cli.docs_written", count=count, folder=folder).to(lang))
    return 0


def check(folders: Sequence[str], lang: Lang) -> int:
    """Every fault of the rule files, all at once; 0 for none, else 1."""
    from diagnose import manual, vet

    faults = vet.check([Path(folder) for folder in folders])
    for fault in faults:
        speak.say(fault.to(lang))
    if faults:
        speak.warn(phrase("cli.rules_faults", count=len(faults)).to(lang))
        return 1
    count = len(manual.shelf([Path(folder) for folder in folders]).entries)
    speak.say(phrase("cli.rules_clean", count=count).to(lang))
    return 0
