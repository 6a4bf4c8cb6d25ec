"""What turned knobs do to the ledgers of a job (`plan/outlook/turned_knobs`), role by role: for agents and for `oomdoctor what-if`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path

from diagnose.budget.model.ledger import Ledger, Moment
from diagnose.catalogue import card, card_names
from diagnose.diagnosis import Diagnosis
from diagnose.facts import FactBook, Value, require_declared
from diagnose.inputs.caller_arguments import parse_setting
from diagnose.phrases import Lang, phrase
from diagnose.plan.choose.advice import job_of
from diagnose.plan.outlook.turned_knobs import CARD, Turned, Workbench
from diagnose.plan.pricing import fit
from diagnose.plan.remedies.remedy_rules import with_folders
from diagnose.render.parts import turned_view, words
from diagnose.surfaces.terminal import console
from diagnose.surfaces.what_if.typed_changes import Figures, MomentChange, RoleChange, TermChange, WhatIf
from diagnose.units import Size, show


def bench(diagnosis: Diagnosis, folders: Sequence[Path] = ()) -> Workbench:
    """The job of a diagnosis, ready to be turned; with the rules of `folders`."""
    rules = with_folders(folders)[0] if folders else None
    return Workbench(job_of(FactBook(diagnosis.facts), diagnosis.ledgers, diagnosis.judgement, diagnosis.documents, rules))


def values(changes: Mapping[str, str]) -> dict[str, Value]:
    """Changes as typed. Raises UserError for a name that nothing has, and a value that it cannot have."""
    for name, text in changes.items():
        if name == CARD and card(text) is None:
            near = difflib.get_close_matches(text, card_names(), 3, 0.3)
            raise console.trouble("takes_word", flag=name, words=", ".join(near or card_names()), text=repr(text))
        if (allowed := require_declared(name).words) and text not in (*allowed, "unknown"):
            raise console.trouble("takes_word", flag=name, words=", ".join(allowed), text=repr(text))
    return {name: parse_setting(name, text) for name, text in changes.items()}


def compare(turned: Turned, diagnosis: Diagnosis, changes: Mapping[str, str], lang: Lang) -> WhatIf:
    """A job before and after, role by role, with what is to be said of either."""
    warnings = [notice.message.to(lang) for notice in diagnosis.notices if notice.level != "info"]
    return WhatIf(
        changes=dict(changes),
        fits_before=turned.before.fits,
        fits_after=turned.after.fits,
        roles=roles(turned, lang),
        notices=list(dict.fromkeys([*warnings, *turned_view.remarks(turned, lang)])),
    )


def roles(turned: Turned, lang: Lang) -> list[RoleChange]:
    """Each role before and after; a side is None for a role that it lacks."""
    old, new = ({ledger.role: ledger for ledger in state.ledgers} for state in (turned.before, turned.after))
    return [compare_roles(name, old.get(name), new.get(name), lang) for name in dict.fromkeys((*old, *new))]


def compare_roles(name: str, before: Ledger | None, after: Ledger | None, lang: Lang) -> RoleChange:
    """One role: its peaks before and after, and the full comparison of these one or two moments."""
    old_peak, new_peak = before.peak if before else None, after.peak if after else None
    current = after or before
    names = dict.fromkeys(peak.name for peak in (old_peak, new_peak) if peak is not None)
    return RoleChange(
        role=name,
        peak_moment_before=old_peak.name if old_peak else None,
        peak_moment_after=new_peak.name if new_peak else None,
        before=figures(old_peak.total if old_peak else None),
        after=figures(new_peak.total if new_peak else None),
        difference=new_peak.total.bytes - old_peak.total.bytes if old_peak and new_peak else None,
        usable=figures(current.usable if current else None),
        fits_before=fit.sits(before),
        fits_after=fit.sits(after),
        moments=[compare_moments(peak_name, before, after, lang) for peak_name in names],
        unknown=list(after.unknown if after else ()),
    )


def compare_moments(name: str, before: Ledger | None, after: Ledger | None, lang: Lang) -> MomentChange:
    """One moment in both ledgers, with the terms that differ, largest change first.

    Different moments are never compared: a term of only one of them would look as if the change had added or removed it.
    """
    old, new = (ledger.moment(name) if ledger is not None else None for ledger in (before, after))
    return MomentChange(
        name=name,
        before=figures(old.total if old else None),
        after=figures(new.total if new else None),
        terms=compare_terms(old, new, lang),
    )


def compare_terms(old_moment: Moment | None, new_moment: Moment | None, lang: Lang) -> list[TermChange]:
    sizes: dict[str, list[int]] = {}
    for index, side in enumerate((old_moment, new_moment)):
        for term in side.terms if side else ():
            sizes.setdefault(term.name.to(lang), [0, 0])[index] += term.size.bytes
    changes = [TermChange(name=name, before=old, after=new, difference=new - old) for name, (old, new) in sizes.items() if old != new]
    return sorted(changes, key=lambda term: -abs(term.difference))


def figures(size: Size | None) -> Figures | None:
    return None if size is None else Figures(bytes=size.bytes, low=size.low, high=size.high)


def summary_text(answer: WhatIf, lang: Lang) -> str:
    """The comparison in a few lines of text."""

    def say(key: str, **values: object) -> str:
        return phrase(f"remote.{key}", **values).to(lang)

    lines = []
    for change in answer.roles:
        if change.before is None or change.after is None:
            lines.append(say("role_unknown", role=change.role))
            continue
        difference = change.after.bytes - change.before.bytes
        lines.append(
            say(
                "role_changes",
                role=change.role,
                before=show(change.before.bytes),
                after=show(change.after.bytes),
                difference=("+" if difference > 0 else "") + show(difference),
                fits_before=phrase(f"remote.fits_{change.fits_before}"),
                fits_after=phrase(f"remote.fits_{change.fits_after}"),
            )
        )
        for moment_change in change.moments:
            lines.append(
                say(f"moment_{peak_side(moment_change, change)}", moment=words.moment(moment_change.name, lang), **totals(moment_change))
            )
            lines += [f"  - {term.name}: {show(term.before)} → {show(term.after)}" for term in moment_change.terms]
    return "\n".join([*(lines or [say("nothing_counted")]), *(f"! {text}" for text in answer.notices)])


def peak_side(moment_change: MomentChange, change: RoleChange) -> str:
    """`both`, `before` or `after`: on which side the moment is the peak; the ending of a phrase key."""
    was_peak, is_peak = moment_change.name == change.peak_moment_before, moment_change.name == change.peak_moment_after
    return "both" if was_peak and is_peak else "before" if was_peak else "after"


def totals(moment_change: MomentChange) -> dict[str, str]:
    return {side: show(size.bytes) if size else "–" for side, size in (("before", moment_change.before), ("after", moment_change.after))}
