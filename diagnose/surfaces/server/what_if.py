"""What would change if some knobs had other values: the same job twice, and the difference between the ledgers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from diagnose.phrases import Lang, phrase
from diagnose.plan.pricing import fit
from diagnose.render.data.part import mapping
from diagnose.render.parts import words
from diagnose.surfaces.server.question import Answer, Question, diagnosed
from diagnose.surfaces.server.typed_answers import Figures, MomentChange, RoleChange, TermChange, WhatIf
from diagnose.units import show

if TYPE_CHECKING:
    from diagnose.budget.model.ledger import Ledger, Moment
    from diagnose.diagnosis import Diagnosis
    from diagnose.units import Size


def compared(asked: Question) -> Answer:
    """The ledgers before and after, role by role. Raises UserError for a name or value that cannot be."""
    before = diagnosed(asked, frontier=False)
    after = diagnosed(asked, asked.changes, frontier=False)
    answer = difference(before, after, asked)
    return Answer(data=json.dumps(mapping(answer, WhatIf, asked.lang), ensure_ascii=False), page=told(answer, asked.lang))


def difference(before: Diagnosis, after: Diagnosis, asked: Question) -> WhatIf:
    """Both diagnoses role by role. A role that one of the two does not have is missing there."""
    first = {ledger.role: ledger for ledger in before.ledgers}
    then = {ledger.role: ledger for ledger in after.ledgers}
    return WhatIf(
        changes=dict(asked.changes),
        fits_before=before.fits,
        fits_after=after.fits,
        roles=[role(name, first.get(name), then.get(name), asked.lang) for name in dict.fromkeys((*first, *then))],
        notices=list(dict.fromkeys(notice.message.to(asked.lang) for notice in after.notices if notice.level != "info")),
    )


def role(name: str, before: Ledger | None, after: Ledger | None, lang: Lang) -> RoleChange:
    """One role's largest moment before and after; `moments`: these two, each as it was and as it is."""
    first, then = before.peak if before else None, after.peak if after else None
    latest = after or before
    names = dict.fromkeys(peak.name for peak in (first, then) if peak is not None)
    return RoleChange(
        role=name,
        peak_moment_before=first.name if first else None,
        peak_moment_after=then.name if then else None,
        before=figures(first.total if first else None),
        after=figures(then.total if then else None),
        difference=then.total.bytes - first.total.bytes if first and then else None,
        usable=figures(latest.usable if latest else None),
        fits_before=fit.sits(before),
        fits_after=fit.sits(after),
        moments=[moment(each, before, after, lang) for each in names],
        unknown=list(after.unknown if after else ()),
    )


def moment(name: str, before: Ledger | None, after: Ledger | None, lang: Lang) -> MomentChange:
    """One moment of both ledgers, and its terms that differ, largest change first. Two moments are never compared with each other:
    what is in hand at one of them alone would look as if the change had made or saved it."""
    first, then = (ledger.moment(name) if ledger is not None else None for ledger in (before, after))
    return MomentChange(
        name=name,
        before=figures(first.total if first else None),
        after=figures(then.total if then else None),
        terms=terms(first, then, lang),
    )


def terms(first: Moment | None, then: Moment | None, lang: Lang) -> list[TermChange]:
    sizes: dict[str, list[int]] = {}
    for place, side in enumerate((first, then)):
        for term in side.terms if side else ():
            sizes.setdefault(term.name.to(lang), [0, 0])[place] += term.size.bytes
    moved = [TermChange(name=name, before=old, after=new, difference=new - old) for name, (old, new) in sizes.items() if old != new]
    return sorted(moved, key=lambda term: -abs(term.difference))


def figures(size: Size | None) -> Figures | None:
    return None if size is None else Figures(bytes=size.bytes, low=size.low, high=size.high)


def told(answer: WhatIf, lang: Lang) -> str:
    """The same in a few lines."""

    def say(key: str, **values: object) -> str:
        return phrase(f"remote.{key}", **values).to(lang)

    lines = []
    for change in answer.roles:
        if change.before is None or change.after is None:
            lines.append(say("role_unknown", role=change.role))
            continue
        moved = change.after.bytes - change.before.bytes
        lines.append(
            say(
                "role_changes",
                role=change.role,
                before=show(change.before.bytes),
                after=show(change.after.bytes),
                difference=("+" if moved > 0 else "") + show(moved),
                fits_before=phrase(f"remote.fits_{change.fits_before}"),
                fits_after=phrase(f"remote.fits_{change.fits_after}"),
            )
        )
        for each in change.moments:
            lines.append(say(f"moment_{place_of(each, change)}", moment=words.moment(each.name, lang), **sums(each)))
            lines += [f"  - {term.name}: {show(term.before)} → {show(term.after)}" for term in each.terms]
    return "\n".join([*(lines or [say("nothing_counted")]), *(f"! {text}" for text in answer.notices)])


def place_of(each: MomentChange, change: RoleChange) -> str:
    """Whether a moment is the peak on both sides, or was it, or has become it."""
    was, now = each.name == change.peak_moment_before, each.name == change.peak_moment_after
    return "both" if was and now else "before" if was else "after"


def sums(each: MomentChange) -> dict[str, str]:
    return {side: show(size.bytes) if size else "–" for side, size in (("before", each.before), ("after", each.after))}
