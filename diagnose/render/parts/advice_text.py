"""Advice as text, for all formats: remedies with their prices, edits, the plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from diagnose import vocabulary
from diagnose.budget.model.ledger import LITTLE, Ledger
from diagnose.diagnosis import Diagnosis
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.phrases import Lang, phrase
from diagnose.plan.edits import key_releases
from diagnose.plan.pricing import fit
from diagnose.plan.remedies.remedy import Edit, Plan, Rejected, Remedy
from diagnose.render.parts import memory_rows
from diagnose.render.parts.failure_text import on_host
from diagnose.render.parts.strings import harmless, map_texts
from diagnose.render.parts.words import (
    amount,
    bracketed,
    colon,
    comma,
    figure,
    meaning,
    name_of,
    semicolon,
    sentence,
    setting,
    short_name,
    value_text,
    word,
)
from diagnose.units import Size, show

#: The verdicts under which a plan can be started.
FITTING = ("yes", "likely")
#: The only one of them that a page shows as good news: the others may not fit.
SURE = "yes"

#: Deviations of the estimate (memory_rows.estimate_deviation) under which no predicted peak is shown.
UNRELIABLE = ("below", "above", "lacks")

#: Facts of which each tells how large a model is.
KNOWN_BY = ("model.shape", "model.total_params", "model.likely_params")

#: Where less than this share of the card is left to the job, it is said that others hold the rest.
LEFT = 0.6

#: Of how many remedies a page asks what became of them.
MOST_TRIED = 5

#: A path with a drive, as Windows prints it in a traceback; the prompt of its newer shell.
_DRIVE = lazy_compile(r"[A-Za-z]:[\\/]")
_PROMPT = lazy_compile(r"\bPS [A-Za-z]:\\[^>]{0,300}>")

#: How each shell sets NAME to VALUE. Where only Windows is known, both forms: neither shell accepts the other's.
_FORMS = {
    "bash": ("export {name}={value}",),
    "cmd": ("set {name}={value}",),
    "powershell": ('$env:{name} = "{value}"',),
    "windows": ("set {name}={value}", '$env:{name} = "{value}"  # PowerShell'),
}

#: The language of a fenced code block for each shell.
BLOCKS = {"bash": "bash", "cmd": "bat", "powershell": "powershell", "windows": "powershell"}


def to_show(diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis as a person may see it: texts that steer no terminal, and no price by an estimate that explains little, also where
    longer rows would explain the rest: the data has those prices by length (`by_length`), one figure of them would mislead."""
    diagnosis = map_texts(diagnosis, harmless)
    share = memory_rows.explained(diagnosis)
    if share is None or share >= LITTLE or diagnosis.asked == "check":
        return diagnosis
    remedies = (without_price(remedy) if remedy.saves is not None else remedy for remedy in diagnosis.outcome.remedies)
    return replace(diagnosis, outcome=diagnosis.outcome._replace(remedies=tuple(remedies)))


def without_price(remedy: Remedy) -> Remedy:
    """The remedy without what it saves, and the usual reason for it."""
    return replace(remedy, saves=None, peak=None, fits="unknown", beyond=False, why=phrase("plan.usual_why"))


def patch(diagnosis: Diagnosis) -> str:
    """The plan as a unified diff of the given configs; empty without edits or configs."""
    if diagnosis.patch is not None:
        return diagnosis.patch
    plan = diagnosis.outcome.plan
    if plan is None or not plan.edits or not diagnosis.documents:
        return ""
    from diagnose.plan.patch import patching  # loads the patchers of every format

    return patching.diff(diagnosis.documents, plan.edits)


def target(change: Edit, diagnosis: Diagnosis) -> str:
    """The file of an edit, with the line where its key stands."""
    documents = (document for document in diagnosis.documents if document.name == change.target)
    lines = (entry.line for document in documents for entry in document.entries if entry.key == change.key and entry.line)
    line = next(lines, 0)
    return f"{short_name(change.target)}:{line}" if line else short_name(change.target)


def effect(remedy: Remedy, lang: Lang) -> str:
    """What a remedy saves, the peak after it and whether that fits; only the upper bound of the saving if the fit is unknown."""
    if remedy.saves is not None and remedy.saves.high <= 0:
        return word("saves_nothing", lang)
    if remedy.saves is not None and remedy.fits == "unknown":
        return word("may_save", lang, size=show(remedy.saves.high))
    parts = [saved_amount(remedy, lang)] if remedy.saves is not None and not remedy.beyond else []
    if remedy.peak is not None:
        parts.append(word("peak_after", lang, size=amount(remedy.peak, lang)))
    return comma(lang).join([*parts, enough(remedy.fits, lang)])


def enough(fits: str, lang: Lang) -> str:
    """Whether the job fits with one remedy alone, from its verdict."""
    return word(f"fits_{fits}", lang, share=f"{fit.MARGIN:.0%}")


def saving_and_price(remedy: Remedy, lang: Lang, alone: bool = True) -> str:
    """In short form: what a remedy saves, whether that suffices (`alone`), and its price."""
    return semicolon(lang).join(filter(None, (saving(remedy, lang, alone), price(remedy, lang))))


def saving(remedy: Remedy, lang: Lang, alone: bool = True) -> str:
    """What a remedy saves, and whether that suffices. A saving that exceeds the card is told as the peak that it leaves."""
    verdict = enough(remedy.fits, lang) if alone and remedy.fits != "unknown" else ""
    if remedy.saves is None or remedy.saves.high <= 0:
        return verdict
    if not alone and remedy.id in vocabulary.having("joins_plans"):  # its peak is that of the other steps
        return word("keeps_usable", lang, size=show(remedy.saves.high))
    if remedy.fits == "unknown":
        return word("may_save_most", lang, size=show(remedy.saves.high))
    if remedy.beyond:  # what a step leaves is said of the whole plan, in its heading
        gain = "" if remedy.peak is None or not alone else word("peak_after", lang, size=amount(remedy.peak, lang))
    else:
        gain = saved_amount(remedy, lang)
    return comma(lang).join(filter(None, (gain, verdict)))


def saved_amount(remedy: Remedy, lang: Lang) -> str:
    """The saving as text: a range or an upper bound. Raises ValueError for an unknown saving."""
    if (saves := remedy.saves) is None:
        raise ValueError(f"{remedy.id} saves nothing that is known")
    return word("saves", lang, size=amount(saves, lang)) if saves.low > 0 else word("may_save_most", lang, size=show(saves.high))


def price(remedy: Remedy, lang: Lang) -> str:
    """What a remedy costs: results, speed, host memory, and effort if it is more than a setting."""
    cost = remedy.price
    if cost.wording is not None:  # nothing is trained
        parts = [cost.wording.to(lang)]
    else:
        parts = [word(f"results_{cost.results}", lang)]
        parts += [] if cost.speed == "same" else [word(f"speed_{cost.speed}", lang)]
    parts += [word(f"effort_{cost.effort}", lang)] if cost.effort in ("code", "hardware") else []
    if cost.host_memory is not None and cost.host_memory.bytes > 0:
        parts.append(word(f"costs_host_{cost.host_each}", lang, size=amount(cost.host_memory, lang)))
    return comma(lang).join(parts)


def reason(remedy: Remedy, diagnosis: Diagnosis, lang: Lang) -> str:
    """Why a step of the plan helps; empty if it repeats a listed cause. If the estimate is unreliable, only the upper bound of the
    saving."""
    if is_unproven(remedy, diagnosis):
        return sentence(word("may_save", lang, size=show(remedy.saves.high)), lang) if remedy.saves is not None else ""
    why = remedy.why.to(lang)
    if remedy.why == phrase("plan.usual_why"):  # as the heading says
        return ""
    return "" if any(cause.title.to(lang) in why for cause in diagnosis.judgement.causes) else sentence(why, lang)


def is_unproven(remedy: Remedy, diagnosis: Diagnosis) -> bool:
    """Whether a remedy's figures rest on an estimate that the log contradicts."""
    return remedy.saves is not None and remedy.fits == "unknown" and memory_rows.estimate_deviation(diagnosis) in UNRELIABLE


def instruction(remedy: Remedy, diagnosis: Diagnosis, lang: Lang) -> str:
    """What to do by hand; empty if edits, a command or a figure already tell it."""
    has_action = remedy.edits or remedy.env or remedy.command is not None or remedy.saves is not None
    return "" if has_action else reason(remedy, diagnosis, lang)


def useless(rejected: Iterable[Rejected]) -> list[Rejected]:
    """Rejected remedies, less those that may help by a little."""
    return [rejection for rejection in rejected if not rejection.little]


def rejection_lines(rejected: Sequence[Rejected], lang: Lang, most: int | None = None) -> list[str]:
    """Rejected remedies grouped by reason: their names, of one reason `most` of them, then the reason."""
    named: dict[str, list[str]] = {}
    for rejection in useless(rejected):
        named.setdefault(sentence(rejection.reason.to(lang), lang), []).append(name_of("remedy", rejection.id, lang))
    lines = []
    for reason, names in named.items():
        beyond = len(names) - most if most is not None else 0
        more = word("more_names", lang, count=beyond) if beyond > 0 else ""
        lines.append(f"{word('next_name', lang).join(names[:most])}{more}{colon(lang)}{reason}")
    return lines


def without_idle(rejected: Sequence[Rejected]) -> list[Rejected]:
    """Rejected remedies, less those rejected only because the job has nothing of the kind they change."""
    return [rejection for rejection in rejected if not rejection.idle]


def little_gains(diagnosis: Diagnosis, lang: Lang) -> list[str]:
    """What may help by a little, a sentence each: neither offered nor called useless."""
    rejected = (rejection for rejection in diagnosis.outcome.rejected if rejection.little)
    return [word("gains_little", lang, what=rejection.reason.to(lang)) for rejection in rejected]


def changes_without_step(plan: Plan, by_id: Mapping[str, Remedy]) -> tuple[list[Edit], list[str]]:
    """The edits and variables of a plan that belong to none of its steps."""
    steps = [by_id[step] for step in plan.steps if step in by_id]
    edits, env = [edit for step in steps for edit in step.edits], [line for step in steps for line in step.env]
    return [edit for edit in plan.edits if edit not in edits], [line for line in plan.env if line not in env]


def edit(change: Edit, lang: Lang) -> str:
    """A change written in the key of the user's file."""
    if change.renamed:
        if change.frm == change.to or change.to is None:
            return word("rename", lang, key=change.key, renamed=change.renamed)
        return word("rename_to", lang, key=change.key, renamed=change.renamed, frm=change.frm or "", to=change.to)
    if change.frm is None:
        return word("add", lang, what=change.written or setting(change.key, change.to or "", change.target))
    if change.to is None:
        bare = change.key.startswith("--") and change.frm == "true"  # an option without a value
        return word("remove", lang, what=change.key if bare else setting(change.key, change.frm, change.target))
    return word("changes", lang, key=setting(change.key, "").rstrip(), frm=change.frm, to=change.to)


def further_edits(edits: Sequence[Edit], shown: int, lang: Lang) -> str:
    """The keys that a remedy changes beside the first `shown` edits; empty where there are none."""
    hidden = edits[shown:]
    named = {change.key for change in edits[:shown]}
    keys = list(dict.fromkeys(change.key for change in hidden if change.key not in named))
    if keys:
        return word("more_edits", lang, keys=word("next_name", lang).join(keys))
    return word("more_places", lang, count=len(hidden)) if hidden else ""


def placed_edit(change: Edit, diagnosis: Diagnosis, lang: Lang) -> str:
    """A change with its place, and from which release on its key is there."""
    return f"{target(change, diagnosis)}{colon(lang)}{dated_edit(change, lang)}"


def dated_edit(change: Edit, lang: Lang) -> str:
    """A change, and from which release on its key is there."""
    return f"{edit(change, lang)}{release(change, lang)}"


def release(change: Edit, lang: Lang) -> str:
    """In brackets, from which release on the key of a change is there; empty where nothing has to be said."""
    return bracketed(key_releases.text(change.since).to(lang), lang) if change.since else ""


def release_notes(edits: Iterable[Edit], lang: Lang) -> list[str]:
    """For what stands beside a patch: the added keys that an older release lacks."""
    return [f"{change.renamed or change.key}{colon(lang)}{key_releases.text(change.since).to(lang)}" for change in edits if change.since]


def is_patchable(diagnosis: Diagnosis) -> bool:
    """Whether the plan changes a file that was given; a command or config that only a log or a page shows is no file."""
    plan = diagnosis.outcome.plan
    files = {document.name for document in diagnosis.documents if document.form != "command" and "#block-" not in document.name}
    return plan is not None and any(edit.target in files for edit in plan.edits)


def plan_note(plan: Plan, lang: Lang) -> str:
    """The note of a plan as a sentence; empty without one."""
    return sentence(plan.note.to(lang), lang) if plan.note else ""


def ladder_line(plan: Plan, diagnosis: Diagnosis, lang: Lang) -> str:
    """The ladder in one line: what may be raised once the plan runs; empty without one."""
    steps = []
    for rung in plan.ladder:
        key, peak = knob_key(rung.knob, diagnosis, lang), amount(rung.predicted_peak, lang)
        steps.append(word("ladder_step", lang, knob=key, frm=value_text(rung.frm, lang), to=value_text(rung.to, lang), peak=peak))
    return sentence(word("ladder_line", lang, steps=semicolon(lang).join(steps)), lang) if steps else ""


def knob_key(knob: str, diagnosis: Diagnosis, lang: Lang) -> str:
    """The key of a knob in the user's files; what the knob means if no file sets it."""
    keys = (entry.key for document in diagnosis.documents for entry in document.entries if knob in entry.knobs)
    edited = (remedy.edits[0].key for remedy in diagnosis.outcome.remedies if remedy.edits and knob in dict(remedy.knobs))
    return next(keys, None) or next(edited, None) or meaning(knob, lang)


def plan_heading(plan: Plan, diagnosis: Diagnosis, ledger: Ledger | None, lang: Lang, others: int = 0) -> str:
    """The heading of a plan: whether its steps belong together, then whether the job fits, or the one thing that keeps that open.

    `others`: so many alternatives follow in the same list.
    """
    count, deviation = len(plan.steps), memory_rows.estimate_deviation(diagnosis)
    is_open = plan.fits == "unknown" or (deviation == "lacks" and plan.fits in FITTING)
    number = "this" if count < 2 else "both" if count == 2 else "all"
    if is_in_order(plan, diagnosis, others):
        lead = word("try_in_order", lang)
    elif plan.fits in ("unlikely", "no"):
        lead = word("closest", lang)
    else:
        lead = word(f"{'try' if is_open and not on_host(diagnosis) else 'do'}_{number}", lang, count=count)
    if on_host(diagnosis):
        later_peak = plan.predicted_peak if vocabulary.having("returns_to_card").intersection(plan.steps) else None
        return lead + (bracketed(word("card_then", lang, peak=amount(later_peak, lang)), lang) if later_peak else "")
    if is_open and diagnosis.outcome.beside and not diagnosis.outcome.usual:
        return lead
    if is_open:
        usual = word("usual_check" if diagnosis.asked == "check" else "usual", lang)
        return lead + bracketed(usual if diagnosis.outcome.usual else open_reason(diagnosis, ledger, lang), lang)
    return f"{lead}{colon(lang)}{plan_peak(plan, ledger, lang, deviation in UNRELIABLE)}"


def is_in_order(plan: Plan, diagnosis: Diagnosis, others: int) -> bool:
    """Whether the one step of a plan and its alternatives are things to try one after the other, and no set with substitutes."""
    return others > 0 and len(plan.steps) == 1 and (plan.fits == "unknown" or on_host(diagnosis))


def open_reason(diagnosis: Diagnosis, ledger: Ledger | None, lang: Lang) -> str:
    """The one thing that keeps open whether the job then fits."""
    if any(fact.name == "report.helped" and fact.origin == "given" and fact.value in tried_first(diagnosis) for fact in diagnosis.facts):
        return word("open_noted", lang)
    known = {fact.name for fact in diagnosis.facts if fact.value is not None}
    unknown = [] if ledger is None else [name for name in memory_rows.unknown_facts(ledger) if name not in known]
    lacks_model = "model.shape" in unknown if ledger is not None else not known.intersection(KNOWN_BY)
    lacks_card = not known.intersection(("hardware.gpu", "hardware.capacity"))
    question = next(iter(diagnosis.outcome.questions), None)  # of several things that are missing the one that is asked for is named
    if lacks_model and (not lacks_card or (question is not None and question.set.startswith("--model"))):
        return word("open_model", lang) if ledger is None else word("open_fact", lang, what=meaning("model.shape", lang))
    if lacks_card:
        return word("open_card", lang)
    # an engine whose weights are stored in an unknown way is not estimated, though its model may be known
    if unknown:
        return word("open_fact", lang, what=meaning(question.fact if question and question.fact in unknown else unknown[0], lang))
    if (deviation := memory_rows.estimate_deviation(diagnosis)) in ("below", "above", "lacks"):
        return word("open_low" if deviation == "lacks" else "open_estimate", lang)
    return word("open_fit" if any(remedy.saves is not None for remedy in diagnosis.outcome.remedies) else "open_saving", lang)


def plan_peak(plan: Plan, ledger: Ledger | None, lang: Lang, is_unreliable: bool = False) -> str:
    """Whether the job fits with a plan, with what to spare, and its peak; without figures where the estimate is unreliable."""
    if plan.predicted_peak is None or plan.fits == "unknown" or is_unreliable:  # a peak that cannot be judged is a lower bound at best
        return word(f"plan_{plan.fits}", lang)
    room = (ledger.usable or ledger.capacity) if ledger is not None else None
    room = Size.exactly(plan.predicted_peak.bytes + plan.margin.bytes) if plan.margin is not None else room  # it may be another card's
    is_open = plan.fits == "likely" and room is not None and plan.predicted_peak.high > room.bytes
    fits = word("plan_open" if is_open else f"plan_{plan.fits}", lang)
    peak = amount(plan.predicted_peak, lang)
    least = plan.predicted_peak.bytes if peak == show(plan.predicted_peak.bytes) else plan.predicted_peak.high  # of a range the upper end
    if plan.margin is not None and room is not None and room.bytes > least and plan.fits in FITTING and not is_open:
        fits = word("spare", lang, fits=fits, margin=figure(Size.exactly(room.bytes - least)))
    before = undrawn_peak(ledger)
    if before is not None and before.bytes > plan.predicted_peak.bytes:
        unit = peak.rpartition(" ")[2]
        peak = word("peak_before", lang, peak=peak, before=amount(before, lang).removesuffix(f" {unit}"))
    told = word("peak_only", lang, peak=peak)
    if room is not None:  # nobody reads 46 of 14 GiB
        over = plan.predicted_peak.high > room.high
        shared = ledger is not None and ledger.capacity is not None and room.bytes < LEFT * ledger.capacity.bytes
        told = word("peak_over" if over else "peak_beside" if shared else "peak_of", lang, peak=peak, usable=amount(room, lang))
    return fits + bracketed(told, lang)


def undrawn_peak(ledger: Ledger | None) -> Size | None:
    """The peak that the plan lowers, where the bar shows an earlier point of the step: what a step saves is taken off that peak."""
    now = memory_rows.main_moment(ledger)
    if ledger is None or now is None or ledger.peak is None or not memory_rows.peaks_later(ledger, now):
        return None
    return ledger.peak.total


# -- environment variables, as the shell of the job sets them


def shell_lines(variables: Sequence[str], diagnosis: Diagnosis) -> list[str]:
    """The commands that set each NAME=VALUE, in the job's shell."""
    if not variables:
        return []
    pairs = [variable.partition("=") for variable in variables]
    forms = _FORMS[shell(diagnosis)]
    return [form.format(name=name, value=value) for form in forms for name, _, value in pairs]


def shell(diagnosis: Diagnosis) -> str:
    """The job's shell: bash, cmd, powershell, or windows if it may be either of the last two. Detected from the launch script, else from
    the log."""
    from diagnose.adapters.shell.shell_text import dialect_of  # only plans with variables need it

    script = next((document for document in diagnosis.documents if document.form == "shell" and not document.outer), None)
    if script is not None:
        return dialect_of(script.text)
    if any(map(_PROMPT.search, quoted_lines(diagnosis))):
        return "powershell"
    if not any(_DRIVE.match(frame.file) for event in diagnosis.events for frame in event.frames):
        return "bash"  # the driver of Windows alone says nothing: it serves Linux inside Windows too
    utf16 = any(source.encoding.lower().startswith("utf-16") for source in diagnosis.inputs if source.kind == "log")
    return "powershell" if utf16 else "windows"  # its `>` writes UTF-16


def quoted_lines(diagnosis: Diagnosis) -> Iterable[str]:
    """The lines of the log that were quoted as evidence."""
    return (fact.witness.text for fact in diagnosis.facts if fact.origin == "log")


def tried_first(diagnosis: Diagnosis) -> list[str]:
    """The words of what is to be done: the steps of the plan, else the first remedy."""
    plan, remedies = diagnosis.outcome.plan, diagnosis.outcome.remedies
    return list(plan.steps) if plan is not None and plan.steps else [remedy.id for remedy in remedies[:1]]


def worth_trying(diagnosis: Diagnosis, lang: Lang) -> tuple[tuple[str, str], ...]:
    """Word and title of the first remedies, those of the plan first: a reader can say what became of them."""
    titles = {remedy.id: remedy.title.to(lang) for remedy in diagnosis.outcome.remedies}
    first = [step for step in tried_first(diagnosis) if step in titles]
    return tuple((word, titles[word]) for word in list(dict.fromkeys([*first, *titles]))[:MOST_TRIED])


def note_command(diagnosis: Diagnosis, lang: Lang) -> str:
    """How to say what became of the advice; empty without advice."""
    words = tried_first(diagnosis)
    return word("note_command", lang, job=diagnosis.job, remedies=" ".join(words)) if words and diagnosis.job else ""
