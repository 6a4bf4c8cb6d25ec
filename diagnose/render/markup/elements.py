"""Elements of HTML and SVG as values: what is no element is a text, and every text is escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import TypeAlias

from diagnose.phrases import Lang

#: Elements without content.
VOID = frozenset({"meta", "br", "hr", "rect", "line", "path", "col"})

#: What `escape` escapes: most texts of a report of thousands of jobs hold none of it.
ACTIVE = re.compile("[&<>\"']")

#: What a link may lead to; anything else is shown as text.
SCHEMES = ("https://", "http://")


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


Child: TypeAlias = "str | Html | Sequence[Child] | None"


def el(name: str, /, *children: Child, **attributes: object) -> Html:
    """An element. `class_` is class, `aria_label` is aria-label; an attribute that is None or False is left out, True is bare."""
    told = ""
    for key, value in attributes.items():  # a report of thousands of jobs has a million elements
        if value is True:
            told += f" {_name(key)}"
        elif value is not None and value is not False:
            told += f' {_name(key)}="{_text(str(value))}"'
    if name in VOID:
        return Html(f"<{name}{told}/>")
    return Html(f"<{name}{told}>{''.join([child if child.__class__ is Html else _child(child) for child in children])}</{name}>")


def inside(*children: Child) -> Html:
    """Children one after another."""
    return Html("".join([child if child.__class__ is Html else _child(child) for child in children]))


def _child(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, str):
        return child if isinstance(child, Html) else _text(child)
    return inside(*child)


@cache
def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _text(text: str) -> str:
    return escape(text, quote=True) if ACTIVE.search(text) else text


def document(title: str, lang: Lang, policy: str, sheet: str, *body: Child) -> str:
    """A whole page: its content security policy and style sheet are its own, and it tells no address where its reader came from."""
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="referrer", content="no-referrer"),
        el("title", title),
        el("style", Html(sheet)),
    )
    return "<!doctype html>\n" + el("html", head, el("body", *body), lang="zh-CN" if lang == "zh" else "en") + "\n"


def link(address: str, *children: Child) -> Html:
    """A link to a page elsewhere, or its text where the address is none that a page should follow."""
    shown = children or (address,)
    if not address.startswith(SCHEMES) or any(sign.isspace() for sign in address):
        return inside(*shown)
    return el("a", *shown, href=address, rel="noopener noreferrer nofollow")


def prose(text: str) -> Html:
    """A sentence whose `code spans` are code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a tick without its fellow is a character
        return inside(text)
    return inside(*(el("code", part) if at % 2 else part for at, part in enumerate(parts)))
