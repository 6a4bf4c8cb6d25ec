"""What would change if some knobs had other values: the same job twice, and the difference between the ledgers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from diagnose.phrases import Lang, phrase
from diagnose.plan.pricing import fit
from diagnose.render.parts import words
from diagnose.surfaces.server.question import Answer, Question, diagnosed

if TYPE_CHECKING:
    from collections.abc import Callable

    from diagnose.budget.model.ledger import Ledger, Moment
    from diagnose.diagnosis import Diagnosis
    from diagnose.units import Size


def compared(asked: Question) -> Answer:
    """The ledgers before and after, role by role. Raises UserError for a name or value that cannot be."""
    before = diagnosed(asked, frontier=False)
    after = diagnosed(asked, asked.changes, frontier=False)
    data = difference(before, after, asked)
    return Answer(data=json.dumps(data, ensure_ascii=False), page=told(data, asked.lang))


def difference(before: Diagnosis, after: Diagnosis, asked: Question) -> dict[str, Any]:
    """The answer as plain data. A role that one of the two does not have is missing there."""
    first = {ledger.role: ledger for ledger in before.ledgers}
    then = {ledger.role: ledger for ledger in after.ledgers}
    return {
        "changes": dict(asked.changes),
        "fits_before": before.fits,
        "fits_after": after.fits,
        "roles": [role(name, first.get(name), then.get(name), asked.lang) for name in dict.fromkeys((*first, *then))],
        "notices": list(dict.fromkeys(notice.message.to(asked.lang) for notice in after.notices if notice.level != "info")),
    }


def role(name: str, before: Ledger | None, after: Ledger | None, lang: Lang) -> dict[str, Any]:
    """One role's largest moment before and after; `moments`: these two, each as it was and as it is."""
    first, then = before.peak if before else None, after.peak if after else None
    held = after or before
    names = dict.fromkeys(peak.name for peak in (first, then) if peak is not None)
    return {
        "role": name,
        "peak_moment_before": first.name if first else None,
        "peak_moment_after": then.name if then else None,
        "before": figures(first.total if first else None),
        "after": figures(then.total if then else None),
        "difference": then.total.bytes - first.total.bytes if first and then else None,
        "usable": figures(held.usable if held else None),
        "fits_before": fit.sits(before),
        "fits_after": fit.sits(after),
        "moments": [moment(each, before, after, lang) for each in names],
        "unknown": list(after.unknown if after else ()),
    }


def moment(name: str, before: Ledger | None, after: Ledger | None, lang: Lang) -> dict[str, Any]:
    """One moment of both ledgers, and its terms that differ, largest change first. Two moments are never compared with each other:
    what is in hand at one of them alone would look as if the change had made or saved it."""
    first, then = (ledger.moment(name) if ledger is not None else None for ledger in (before, after))
    return {
        "name": name,
        "before": figures(first.total if first else None),
        "after": figures(then.total if then else None),
        "terms": terms(first, then, lang),
    }


def terms(first: Moment | None, then: Moment | None, lang: Lang) -> list[dict[str, Any]]:
    sizes: dict[str, list[int]] = {}
    for place, held in enumerate((first, then)):
        for term in held.terms if held else ():
            sizes.setdefault(term.name.to(lang), [0, 0])[place] += term.size.bytes
    moved = [{"name": name, "before": old, "after": new, "difference": new - old} for name, (old, new) in sizes.items() if old != new]
    return sorted(moved, key=lambda term: -abs(int(str(term["difference"]))))


def figures(size: Size | None) -> dict[str, int] | None:
    return None if size is None else {"bytes": size.bytes, "low": size.low, "high": size.high}


def told(data: dict[str, Any], lang: Lang) -> str:
    """The same in a few lines."""
    from diagnose.units import show

    def amount(count: int) -> str:
        return ("-" if count < 0 else "") + show(abs(count))

    def say(key: str, **values: object) -> str:
        return phrase(f"remote.{key}", **values).to(lang)

    lines = []
    for one in data["roles"]:
        if one["before"] is None or one["after"] is None:
            lines.append(say("role_unknown", role=one["role"]))
            continue
        lines.append(
            say(
                "role_changes",
                role=one["role"],
                before=amount(one["before"]["bytes"]),
                after=amount(one["after"]["bytes"]),
                difference=("+" if one["difference"] > 0 else "") + amount(one["difference"]),
                fits_before=phrase(f"remote.fits_{one['fits_before']}"),
                fits_after=phrase(f"remote.fits_{one['fits_after']}"),
            )
        )
        for each in one["moments"]:
            lines.append(say(f"moment_{place_of(each, one)}", moment=words.moment(each["name"], lang), **sums(each, amount)))
            lines += [f"  - {term['name']}: {amount(term['before'])} → {amount(term['after'])}" for term in each["terms"]]
    return "\n".join([*(lines or [say("nothing_counted")]), *(f"! {text}" for text in data["notices"])])


def place_of(each: dict[str, Any], one: dict[str, Any]) -> str:
    """Whether a moment is the peak on both sides, or was it, or has become it."""
    was, now = each["name"] == one["peak_moment_before"], each["name"] == one["peak_moment_after"]
    return "both" if was and now else "before" if was else "after"


def sums(each: dict[str, Any], amount: Callable[[int], str]) -> dict[str, str]:
    return {side: amount(each[side]["bytes"]) if each[side] is not None else "–" for side in ("before", "after")}
