"""The Jinja environment for all pages. Templates, style sheets and the script are files in `templates/`.

All texts are escaped unless a template marks them as markup; an undefined name raises.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from diagnose.phrases import Lang, Text
from diagnose.render.parts import words
from diagnose.render.parts.strings import one_line

TEMPLATES = Path(__file__).parent / "templates"

#: What a link may lead to; anything else is shown as text.
SCHEMES = ("https://", "http://")

#: A statement, expression or comment of a template, or a line break outside of them with the indentation that follows.
LAYOUT = re.compile(r"(\{[{%#].*?[}%#]\})|\n\s*", re.DOTALL)


def page(name: str, lang: Lang, **values: object) -> Iterator[str]:
    """Render a page in pieces, so that a large one is not held in memory twice."""
    shared = {
        "lang": lang,
        "colon": words.colon(lang),
        "script": "",
        "word": lambda key, **values_by_name: words.word(key, lang, **values_by_name),
    }
    return environment().get_template(f"{name}.html.j2").generate(shared | values)


def by_name(*functions: Callable[..., object]) -> dict[str, object]:
    """Functions by name, to be called from templates."""
    return {function.__name__: function for function in functions}


@cache
def environment() -> Environment:
    jinja = Environment(loader=FunctionLoader(_source), autoescape=True, undefined=StrictUndefined)
    jinja.filters.update(prose=prose, link=link, percent=percent, text=_text, one_line=one_line, place=words.place)
    jinja.globals.update(policy=policy)
    return jinja


def _source(name: str) -> tuple[str, str, None]:
    """A template without indentation and line breaks, which would inflate pages of thousands of rows. They become comments, so that
    errors still name the right line."""
    path = TEMPLATES / name
    return LAYOUT.sub(lambda match: match[1] or "{#" + "\n" * match[0].count("\n") + "#}", path.read_text("utf-8")), str(path), None


@cache
def asset(*names: str) -> str:
    """Style sheets or scripts, concatenated."""
    return "".join((TEMPLATES / name).read_text("utf-8") for name in names)


@cache
def csp_digest(content: str) -> str:
    """The hash source of a style sheet or script for a content security policy."""
    return f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"


def policy(sheet: str, script: str = "") -> str:
    """The content security policy of a page: its own style and script, and nothing else."""
    scripts = f" script-src {csp_digest(script)};" if script else ""
    return f"default-src 'none'; style-src {csp_digest(sheet)};{scripts} base-uri 'none'; form-action 'none'"


# -- filters


@pass_context
def _text(context: Context, text: Text) -> str:
    """A Text in the page's language."""
    return text.to(context["lang"])


def prose(text: str) -> Markup:
    """A sentence with its `code spans` as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # an unpaired backtick is text
        return escape(text)
    return Markup("").join(Markup("<code>{}</code>").format(part) if at % 2 else part for at, part in enumerate(parts))


def link(address: str) -> Markup:
    """A link, or only its text if the address has another scheme than http(s)."""
    if not address.startswith(SCHEMES) or any(sign.isspace() for sign in address):
        return escape(address)
    return Markup('<a href="{0}" rel="noopener noreferrer nofollow">{0}</a>').format(address)


def percent(share: float) -> str:
    """A share as a CSS width."""
    return f"{share:.3f}%"


# -- what is drawn or coloured


def diff(lines: Iterable[str], context_kind: str = "at") -> list[tuple[str, str]]:
    """Lines of a diff with their CSS class; `other`: neither added nor removed."""
    return [({"+": "add", "-": "del"}.get(line[:1], context_kind), line) for line in lines]


def stretches(sizes: Iterable[tuple[object, float]], whole: float) -> Iterator[tuple[Any, float, float]]:
    """Each item with start and width in per cent of `whole`."""
    start = 0.0
    for item, size in sizes:
        width = 100 * size / whole
        yield item, start, width
        start += width
