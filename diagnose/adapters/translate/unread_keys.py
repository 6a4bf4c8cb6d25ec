"""Reports keys that a framework does not know, each with the real key that it resembles."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from diagnose.adapters.formats.config_value import Leaf, name_of
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.ignored_keys import is_on
from diagnose.adapters.schema.similar_keys import Likeness
from diagnose.adapters.schema.table_types import Table
from diagnose.facts import Fact, Notice
from diagnose.phrases import phrase
from diagnose.release_spans import ReleaseSpan

if TYPE_CHECKING:
    from diagnose.adapters.translate.config_part import Part, Translation

#: Limits of unknown keys: reported (a file with more is no config of this framework), and compared with every real key.
MOST_UNKNOWN, MOST_COMPARED = 100, 20


def unknown_keys(part: Part, span: ReleaseSpan, result: Translation) -> None:
    """Add facts and notices for keys that are misspelt, another framework's, or of another release."""
    tab = part.table
    rejected = _reject_in_blocks(part, result)
    if any(name_of(leaf.key) in tab.extended_by and is_on(leaf) for leaf in part.leaves):
        return
    closed = _is_closed(part)
    unread: list[tuple[str, str, Leaf]] = []
    count = 0
    for leaf in part.leaves:
        name = name_of(leaf.key)
        spellings = tab.named(name)
        removed = closed and tab.unknown == "dropped" and bool(spellings) and all(key.releases.covers(span) is False for key in spellings)
        if not removed and (name in tab.known or spellings or leaf.key.startswith(("+", "~"))):
            continue
        if _is_inside(name, rejected):
            continue
        count += 1
        if count > MOST_UNKNOWN:
            _add_rest(part, leaf, result)
            break
        if not removed and (not closed or _is_nested(part, name)):
            _add_similar(part, leaf, span, result, unread)
            continue
        near, knob = nearest(tab, name, span, result.settled, count <= MOST_COMPARED)
        if tab.unknown == "dropped":
            unread.append((knob, near, leaf))
        code = (
            ("unknown_key_gone" if removed and near else "unknown_key_near" if near else "unknown_key")
            if tab.unknown == "dropped"
            else ("rejected_key_near" if near else "rejected_key")
        )
        _add_notice(code, part, leaf, near, result)
    for knob, near, leaf in sorted(
        unread, key=lambda pair: not pair[0]
    ):  # keys with a knob first: the n-th wanted knob belongs to the n-th key
        result.facts.append(Fact("config.unknown_key", leaf.key, part.origin, part.witness_of(leaf)))
        if knob:
            result.facts.append(Fact("config.wanted_knob", knob, part.origin, part.witness_of(leaf)))
            result.facts.append(Fact("config.wanted_key", near, part.origin, part.witness_of(leaf)))
            result.facts.append(Fact("config.reader", framework_tables.display_name(tab.name), part.origin, part.witness_of(leaf)))


def _add_notice(code: str, part: Part, leaf: Leaf, near: str, result: Translation) -> None:
    message = phrase(f"adapters.{code}", name=leaf.key, framework=framework_tables.display_name(part.table.name), near=near)
    result.notices.append(Notice("warning", "config.unknown_key", message, part.witness_of(leaf)))


def _add_rest(part: Part, leaf: Leaf, result: Translation) -> None:
    """Say that the unknown keys from this one on are not listed."""
    result.notices.append(
        Notice("warning", "config.unknown_keys", phrase("adapters.unknown_keys", most=MOST_UNKNOWN, name=leaf.key), part.witness_of(leaf))
    )


def _is_closed(part: Part) -> bool:
    """Whether the config accepts no keys beyond the framework's. Hydra rejects unknown overrides of a shipped configuration;
    a file may extend it."""
    tab = part.table
    if tab.unknown != "overrides":
        return tab.unknown != "anything" and part.own_keys
    chosen = {leaf.text for leaf in part.leaves if name_of(leaf.key) in tab.config_keys}
    is_own_program = any(word in part.entry for word in tab.detect.get("commands", ()))
    searches_elsewhere = any(
        leaf.key.startswith("-") and name_of(leaf.key) not in tab.config_keys for leaf in part.leaves
    )  # another folder, say
    return (
        is_own_program
        and not searches_elsewhere
        and part.form in ("command", "shell")
        and {(text or "").removesuffix(".yaml") for text in chosen} <= tab.shipped
    )


def _add_similar(part: Part, leaf: Leaf, span: ReleaseSpan, result: Translation, unread: list[tuple[str, str, Leaf]]) -> None:
    """Report a key that may be the user's own only if it misspells a real one; names of a module never, a variable of the environment only
    if the script itself does not use it and the real one turns a knob."""
    tab, name = part.table, name_of(leaf.key)
    if tab.variables:
        near = "" if re.search(rf"\$\{{?{re.escape(name)}\b", part.text) else _likeness(tab.name).unless_short(name)
        knob = next((key.knob for key in tab.named(near) if not key.read_only), "") if near else ""
        if knob and knob not in result.settled:
            unread.append((knob, near, leaf))
            _add_notice("key_like", part, leaf, near, result)
        return
    is_free = part.form == "python" and ("." in name or tab.detect.get("modules"))
    if is_free or name.rpartition(".")[0] in (tab.blocks or ()):
        return
    near = _likeness(tab.name).unless_short(name)
    if not near or any(name_of(sibling.key) == near for sibling in part.leaves):
        return
    if tab.unknown == "dropped" and part.own_keys:
        knob = next((key.knob for key in tab.named(near) if not key.read_only and key.releases.covers(span) is not False), "")
        unread.append(("" if knob in result.settled else knob, near, leaf))
    if not _is_inside(name, [notice.witness.key for notice in result.notices if notice.code == "config.unknown_key" and notice.witness]):
        _add_notice("key_like", part, leaf, near, result)


def _is_inside(name: str, blocks: Iterable[str]) -> bool:
    """Whether the key lies in one of these blocks, which are already reported."""
    return any(name.startswith(f"{block}.") for block in blocks)


@cache
def _likeness(framework: str) -> Likeness:
    """Index of a framework's real keys, built on the first unknown key."""
    tab = framework_tables.table(framework)
    inside = (f"{block}.{word}" for block, words in (tab.blocks or {}).items() for word in words)
    return Likeness({*tab.known, *(key.key for key in tab.keys if key.key), *inside})


def _is_nested(part: Part, name: str) -> bool:
    """Whether the key is nested in a block and may be the user's own; keys of TOML and Hydra are compared whole."""
    if part.table.unknown == "overrides":
        return False
    if "." in name and name.partition(".")[0] in part.table.known:
        return True
    if part.form == "toml":
        return any(word.startswith(f"{name}.") for word in part.table.known)
    return "." in name and part.form in ("yaml", "json", "python")


def nearest(tab: Table, name: str, span: ReleaseSpan, settled: set[str], compare: bool = True) -> tuple[str, str]:
    """The real key that an unknown one most resembles, and its knob (each empty if none).

    For another framework's key, the nearest is this framework's key for the same knob. `compare`: with every real key, which takes long
    where a framework has a thousand; else slips of one letter only are recognised.
    """
    import difflib

    usable = {key.key: key.knob for key in tab.keys if key.key and not key.read_only and key.releases.covers(span) is not False}
    for other, knobs in framework_tables.turned_by(name).items():
        for turned in knobs if other != tab.name else ():
            own = next((spelling for spelling, knob in usable.items() if knob == turned), "")
            if own:
                return own, turned if turned not in settled else ""
    slip = _likeness(tab.name).of(name)
    pool = list(usable) + [word for word in tab.known if word not in usable]
    near = [slip] if slip in pool else difflib.get_close_matches(name, pool, 1, 0.75) if compare else []
    if not near:
        return "", ""
    knob = usable.get(near[0], "")
    return near[0], "" if knob in settled else knob


def _reject_in_blocks(part: Part, result: Translation) -> list[str]:
    """Report keys that a closed block rejects at start-up, and return them."""
    rejected: list[str] = []
    for leaf in part.leaves if part.own_keys and part.table.blocks else ():
        block, dot, inner = name_of(leaf.key).partition(".")
        allowed = (part.table.blocks or {}).get(block)
        name = inner.partition(".")[0]
        if not dot or allowed is None or name in allowed or "." in inner or len(result.notices) > MOST_UNKNOWN:
            continue
        import difflib

        near = difflib.get_close_matches(name, allowed, 1, 0.75)
        message = phrase(
            f"adapters.rejected_key{'_near' if near else ''}",
            name=leaf.key,
            framework=framework_tables.display_name(part.table.name),
            near="".join(near),
        )
        result.notices.append(Notice("warning", "config.unknown_key", message, part.witness_of(leaf)))
        rejected.append(name_of(leaf.key))
    return rejected
