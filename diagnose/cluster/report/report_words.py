"""Sentences of the triage report for text, Markdown, pages and chats: lead, groups, costs, plans."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from diagnose.cluster.report.summary_types import Cost, Group, Named, Near, Period, Summary, Unread, Variant
from diagnose.cluster.store import group_fingerprint
from diagnose.phrases import Lang, phrase
from diagnose.render.parts import advice_text, failure_text, words
from diagnose.render.parts.strings import one_line
from diagnose.render.parts.words import bracketed, colon, comma, semicolon
from diagnose.units import show

#: Jobs and users named in a line.
NAMED = 3

#: Words of knobs that people say in their own language.
SWITCHED = {"on": True, "enabled": True, "off": False, "disabled": False}


def say(key: str, lang: Lang, /, **values: object) -> str:
    """A phrase of rules/phrases/triage.yaml."""
    return phrase(f"triage.{key}").fill(**values).to(lang)


def number(count: float) -> str:
    """A number with thousands separators (1,203); small fractions with one decimal."""
    return f"{count:,.1f}" if count < 100 and count != int(count) else f"{count:,.0f}"


def percent(part: float, whole: float) -> str:
    """A share without decimals; small non-zero shares as below 1 %."""
    share = 100 * part / whole if whole else 0.0
    return "< 1%" if 0 < share < 1 else f"{share:.0f}%"


def date(moment: float) -> str:
    """A UTC date such as 2026-11-16."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d")


def minute(moment: float | None) -> str:
    """A UTC time such as 2026-11-16 06:00; empty if unknown."""
    return "" if moment is None else datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M")


# -- the answer


def lead(summary: Summary, lang: Lang) -> str:
    """The main finding in one sentence: what most failures have in common."""
    failed = summary.counts.failed
    if not summary.counts.jobs:
        return say("lead_empty", lang)
    if not failed or not summary.groups:
        return say("lead_none", lang)
    first = summary.groups[0]
    figures = {"count": number(first.jobs), "failed": number(failed)}
    if failed == 1:
        return say("lead_single", lang)
    if summary.by != "fingerprint" and all(group.jobs == 1 for group in summary.groups):
        return say("lead_by_apart", lang, failed=figures["failed"], by=say(f"by_{summary.by}", lang))
    if summary.by != "fingerprint":
        return say("lead_by", lang, **figures, by=say(f"by_{summary.by}", lang), what=title(first, summary.by, lang))
    if first.jobs == 1:
        return say("lead_apart" if all(group.jobs == 1 for group in summary.groups) else "lead_dearest", lang, **figures)
    claim = "" if first.parts is not None and group_fingerprint.is_one_mistake(first.parts) else "_alike"
    return say(f"{'lead_all' if first.jobs == failed else 'lead_one'}{claim}", lang, **figures)


def costs(summary: Summary, lang: Lang) -> str:
    """The cost of the first group, which is the dearest; empty if unknown."""
    first = summary.groups[0] if summary.groups else None
    if first is None or not first.cost.known:
        return ""
    return say("cost_it" if first.jobs == 1 else "cost_them", lang, hours=hours(first.cost, lang))


def jobs_read(summary: Summary, lang: Lang) -> str:
    """The number of jobs and their results; for jobs without memory failure their scheduler states."""
    counts = summary.counts
    unread = max(counts.unread, len(summary.unread))
    figures = {
        "jobs": number(counts.jobs),
        "failed": number(counts.failed),
        "others": number(counts.lookalike + counts.none),
        "unread": number(unread),
    }
    sentences = [say("read", lang, **figures, states=bracketed(ended, lang) if (ended := states(summary, lang)) else "")]
    if summary.since is not None:
        sentences.append(say("since", lang, date=date(summary.since)))
    return semicolon(lang).join(sentences)


def states(summary: Summary, lang: Lang) -> str:
    """Scheduler states of jobs without memory failure."""
    others = summary.counts.lookalike + summary.counts.none
    if others > 1 and [state.jobs for state in summary.states] == [others]:
        return say("state_all", lang, state=one_line(summary.states[0].name))
    return comma(lang).join(say("state", lang, count=number(state.jobs), state=one_line(state.name)) for state in summary.states)


# -- a group


def title(group: Group, by: str, lang: Lang) -> str:
    """The title of a group: its leading cause, or the value that it is grouped by."""
    if by == "fingerprint":
        return one_line(group.title.to(lang)).rstrip(".。") or say("no_cause", lang)
    return value(by, group.key, lang)


def value(by: str, key: str, lang: Lang) -> str:
    """The display name of a grouping value."""
    if not key:
        return say("no_cause" if by == "cause" else "not_said", lang)
    if by == "cause":
        return failure_text.name_of_cause(key, lang)
    if by == "phase":
        return words.phase(key, lang)
    if by == "framework":
        return framework(key, lang)
    return tensor(key, lang) if by == "tensor" else one_line(key)


def framework(name: str, lang: Lang) -> str:
    try:
        return phrase(f"adapters.framework_{name}").to(lang)
    except KeyError:
        return one_line(name) or say("framework_unknown", lang)


def tensor(key: str, lang: Lang) -> str:
    """The display name of a tensor, without its figures."""
    try:
        return phrase(key).to(lang)
    except KeyError:
        return one_line(key)


def where(group: Group, lang: Lang) -> str:
    """Phase, place, tensor and settings of a mistake; empty if unknown."""
    parts = group.parts
    if parts is None:
        return ""
    places = [
        say("during", lang, phase=words.phase(parts.phase, lang)) if parts.phase else "",
        say("at_frame", lang, frame=one_line(parts.frame)) if parts.frame else "",
        tensor(parts.tensor, lang) if parts.tensor else "",
    ]
    settings = [setting(knob, lang) for knob in parts.knobs.split(",") if knob]
    return semicolon(lang).join(filter(None, (comma(lang).join(filter(None, places)), comma(lang).join(settings))))


def setting(knob: str, lang: Lang) -> str:
    """A knob with its value, in words."""
    name, _, assigned = knob.partition("=")
    try:
        label = say(f"fact_{name}", lang)
    except KeyError:
        label = words.meaning(name, lang)
    text = words.value_text(SWITCHED[assigned], lang) if assigned in SWITCHED else one_line(assigned)
    return f"{label}{colon(lang)}{text}"


def hours_alone(cost: Cost, lang: Lang) -> str:
    """GPU-hours in words, or that they are unknown."""
    return say("hours_unknown", lang) if cost.hours is None else say("hours", lang, count=number(cost.hours))


def hours(cost: Cost, lang: Lang) -> str:
    """GPU-hours, with the number of jobs for which they are known if not for all."""
    text = hours_alone(cost, lang)
    if not cost.known or cost.known == cost.jobs:
        return text
    return say("hours_of", lang, hours=text, known=number(cost.known), jobs=number(cost.jobs))


def period_text(period: Period, lang: Lang) -> str:
    """The period covered, and whether dates come from log files; empty if no job is dated."""
    if period.first is None or period.last is None:
        return ""
    first, last = date(period.first), date(period.last)
    days = first if first == last else say("days", lang, first=first, last=last)
    return days + bracketed(say("by_log", lang), lang) if period.by_log else days


def names(entries: Iterable[Named], count: int, lang: Lang, limit: int = NAMED) -> str:
    """The most frequent names with their numbers of jobs, and the number of further ones."""
    texts = [
        f"{one_line(entry.name)} ({number(entry.jobs)})" if lang == "en" else f"{one_line(entry.name)}（{number(entry.jobs)}）"
        for entry in entries
    ]
    texts = texts[:limit]
    hidden = count - len(texts)
    text = comma(lang).join(texts)
    return f"{text}{'' if lang == 'zh' else ' '}{say('more', lang, count=number(hidden))}" if texts and hidden > 0 else text


def people(group: Group, lang: Lang) -> str:
    """Known users and projects of a group."""
    parts = []
    for kind, count, entries in (("users", group.user_count, group.users), ("projects", group.project_count, group.projects)):
        if count:
            parts.append(f"{say(kind, lang, count=number(count))}{colon(lang)}{names(entries, count, lang)}")
    return semicolon(lang).join(parts)


def count(jobs: int, lang: Lang) -> str:
    return say("count", lang, count=number(jobs))


def certainty_text(group: Group, lang: Lang) -> str:
    """The number of certain causes, and of jobs in which the plan fits."""
    key = "certain_all" if group.certain == group.jobs else "certain"
    certainty = say(key, lang, certain=number(group.certain), jobs=number(group.jobs))
    sentences = [certainty if group.jobs > 1 else say("certain_one" if group.certain else "likely_one", lang)]
    if group.plan is not None:
        sentences.append(fits(group, lang))
    return semicolon(lang).join(sentences)


def tried_text(group: Group, lang: Lang) -> str:
    """What became of remedies in the group; empty where nobody says."""
    return semicolon(lang).join(
        say(
            "tried_counts",
            lang,
            remedy=words.name_of("remedy", tried.remedy, lang),
            worked=number(tried.worked),
            failed=number(tried.failed),
        )
        for tried in group.tried
    )


def fitting(group: Group) -> int:
    """The number of jobs in which the plan fits."""
    return sum(entry.jobs for entry in group.plan.fits if entry.name in advice_text.FITTING) if group.plan is not None else 0


def estimated(group: Group) -> bool:
    """Whether it is known for any job if its plan fits."""
    return group.plan is not None and not {entry.name for entry in group.plan.fits} <= {"unknown", "none"}


def fits_short(group: Group, lang: Lang) -> str:
    """The number of jobs in which the plan fits, as two figures for a column."""
    if group.plan is None:
        return ""
    return f"{number(fitting(group))} / {number(group.jobs)}" if estimated(group) else say("unknown", lang)


def fits(group: Group, lang: Lang) -> str:
    """The number of jobs in which the plan fits, as a sentence."""
    jobs = fitting(group)
    if not estimated(group):
        return say("fits_unknown", lang)
    if group.jobs == 1:
        return say("fits_one" if jobs else "short_one", lang)
    return say("fits_all" if jobs == group.jobs else "fits_some", lang, fits=number(jobs), jobs=number(group.jobs))


def near_text(similar: Near, lang: Lang, group: str) -> str:
    """Why another group may be the same mistake."""
    same, different = (comma(lang).join(say(f"part_{part}", lang) for part in parts) for parts in (similar.same, similar.other))
    return say("near", lang, group=group) + bracketed(say("near_why", lang, same=same, other=different), lang)


# -- what to change


def steps(group: Group, lang: Lang) -> str:
    """The titles of a plan's steps."""
    return semicolon(lang).join(one_line(step.title.to(lang)).rstrip(".。") for step in group.plan.steps) if group.plan is not None else ""


def variant_title(variant: Variant, lang: Lang) -> str:
    """The title of a config variant: LLaMA-Factory, 72 jobs."""
    return f"{framework(variant.framework, lang)}{comma(lang)}{count(variant.jobs, lang)}"


def variant_note(group: Group, variant: Variant, lang: Lang) -> str:
    """Differences of a variant: other steps than the group's, jobs that need other values; empty if none."""
    planned = {step.remedy for step in group.plan.steps} if group.plan is not None else set()
    extra = [step for step in variant.steps if step not in planned]
    lacking = not planned <= set(variant.steps)
    needs = "needs_instead" if extra and lacking else "needs_only" if lacking else "also_needs"
    names_needed = [words.name_of("remedy", step, lang) for step in (variant.steps if lacking else extra)]
    sentences = [say(needs, lang, steps=comma(lang).join(names_needed))] if names_needed else []
    if variant.alike < variant.jobs:
        sentences.append(say("other_values", lang, count=number(variant.jobs - variant.alike)))
    return semicolon(lang).join(sentences)


def edits(variant: Variant, lang: Lang) -> list[str]:
    """A variant's edits as lines: the file, then its changes."""
    lines = [f"{one_line(change.target)}{colon(lang)}{one_line(advice_text.dated_edit(change, lang))}" for change in variant.edits]
    return [*lines, *(f"{say('environment', lang)}{colon(lang)}{variable}" for variable in variables(variant.env))]


def releases(variant: Variant, lang: Lang) -> str:
    """From which release on the keys are there that a variant's diff adds; empty where nothing has to be said."""
    return semicolon(lang).join(map(one_line, advice_text.release_notes(variant.edits, lang)))


def variables(env: Iterable[str]) -> list[str]:
    """Environment variables as a shell sets them: they belong to no file, so that no diff holds them."""
    return [f"export {one_line(variable)}" for variable in env]


def unread_job(job: Unread, lang: Lang) -> str:
    """An unreadable job and the reason."""
    message = one_line(job.message.to(lang))
    name = one_line(job.job)
    return message if name in message else f"{name}{colon(lang)}{message}"


def shortage_text(group: Group, lang: Lang) -> str:
    return "" if group.short is None else say("short", lang, size=show(group.short))
