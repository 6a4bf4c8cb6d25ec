"""The failure and its causes as text, for all formats."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from diagnose import families, rule_files, vocabulary
from diagnose.decide.known_bad_releases import library_of
from diagnose.decide.verdict import Verdict as Ruling
from diagnose.diagnosis import Diagnosis
from diagnose.facts import Notice, declared
from diagnose.parse.model.event import Event
from diagnose.phrases import Lang, Text, phrase
from diagnose.plan.pricing import fit
from diagnose.records import NamedTuple
from diagnose.render.parts.words import amount, bracketed, colon, comma, phase, places, semicolon, sentence, word
from diagnose.units import Size

#: Notices about which of several runs is diagnosed: shown though they are only information.
RUN_NOTICES = ("attempts", "started_again", "older_runs", "noted")
#: Notices that change how the whole answer is read, which come first: a command that ends early did not run as it looks, nor did a
#: configuration that the log contradicts.
LEADING_NOTICES = ("config.cut_off", "config.joined_words", "config.disagreement", "config.conflict")

#: A range that is wider says nothing.
WIDE = 1.5
#: A figure in a sentence.
FIGURE = re.compile(r"\d[\d.]* (?:[KMGT]i?B|bytes)")

#: A share from here on is said as a multiple.
MANIFOLD = 2.0

#: Below this share of the card a kind of memory is no answer to what filled it.
FEW = 0.05

#: Causes in the line that names them.
CAUSES = 2

#: Bytes below which memory without a known owner is not mentioned.
NEGLIGIBLE = 2**28


class Figure(NamedTuple):
    """What a cause accounts for: the size that the bar draws, the refused request of the same kind, and the share of the card of both;
    each None where it is not known."""

    size: Size | None = None
    share: float | None = None
    refused: Size | None = None

    def text(self, lang: Lang) -> str:
        """The size, and that of the refused request said beside it, so that the size is the one that the bar shows."""
        if self.size is None:
            return ""
        text = amount(self.size, lang)
        return text if self.refused is None else word("and_refused", lang, size=text, refused=amount(self.refused, lang))


def certainty(cause: Ruling, lang: Lang) -> str:
    """The word for a cause's certainty: certain, likely, possible, or also true."""
    if cause.also_true:
        return word("also_true" if cause.outcome == "fires" else "also_likely", lang)
    return word(cause.certainty, lang)


def accounted_size(cause: Ruling, figures: Mapping[str, Figure], lang: Lang) -> str:
    """The bytes that a cause accounts for and their share of the card; empty if unknown."""
    figure = figure_of(cause, figures)
    if not (text := figure.text(lang)):
        return ""
    if figure.share is None:
        return word("accounts_for", lang, size=text)
    key = "accounts_for_share" if figure.refused is None else "accounts_for_share_together"
    return word(key, lang, size=text, share=part_of_card(figure.share, lang))


def figure_of(cause: Ruling, figures: Mapping[str, Figure]) -> Figure:
    """What a cause accounts for, with its share of the card; nothing where that is so little that it cannot be what filled the card."""
    figure = _figure_of(cause, figures)
    fills = cause.cause in vocabulary.having("fills_card") | vocabulary.having("stays_in_memory")
    return Figure() if fills and figure.share is not None and figure.share < FEW else figure


def _figure_of(cause: Ruling, figures: Mapping[str, Figure]) -> Figure:
    """The figure of the bar where the bar has that part, so that one quantity has one figure. Of the estimate nothing is said that spans
    more than WIDE times its least, or that the explanation says otherwise."""
    size, said = cause.accounts_for, FIGURE.findall(cause.explanation.en)
    if size is not None and (drawn := figures.get(cause.cause)) is not None:
        whole = drawn.size if drawn.size is None or drawn.refused is None else drawn.size + drawn.refused
        alike = [amount(each) for each in (drawn.size, whole) if each is not None]
        return Figure() if amount(size) in said and amount(size) not in alike else drawn
    if size is None or size.high > WIDE * max(size.low, 1):
        return Figure()
    if said and amount(size) not in said:  # two figures for what is told as one
        return Figure()
    return Figure(size if size.text else Size.exactly(size.bytes), cause.share)


def brief_causes(
    causes: Sequence[Ruling], figures: Mapping[str, Figure], lang: Lang, cited: Sequence[str], share: bool = True, size: bool = True
) -> str:
    """Causes by name with certainty, size, share of the card (on request) and the places in `cited`. What has no name is not listed."""
    texts, card_named, open_all = [], False, are_possible(causes)
    for cause, place in zip(causes, cited, strict=True):
        if cause.cause == "unknown":
            continue
        figure = figure_of(cause, figures)
        figures_text = figure.text(lang) if size else ""
        if figures_text and share and figure.share is not None:
            together = figure.refused is not None
            key = "of_the_card_together" if together else "" if card_named and figure.share < MANIFOLD else "of_the_card"
            figures_text += comma(lang) + (word(key, lang, share=part_of_card(figure.share, lang)) if key else f"{figure.share:.0%}")
            card_named = True
        notes = comma(lang).join(filter(None, ["" if open_all else certainty(cause, lang), figures_text, place]))
        texts.append(name_with_owner(cause, lang) + (bracketed(notes, lang) if notes else ""))
    return semicolon(lang).join(texts)


def are_possible(causes: Sequence[Ruling]) -> bool:
    """Whether nothing settles the cause: each that has a name is no more than possible."""
    return all(cause.certainty == "possible" for cause in causes if cause.cause != "unknown")


def why_title(causes: Sequence[Ruling], lang: Lang) -> str:
    """What stands before the causes: `Why` would deny the sentence above, which says that the log does not show it."""
    return word("why_possibly" if are_possible(causes) else "why", lang)


def part_of_card(share: float, lang: Lang) -> str:
    """A share as a percentage, or as a multiple where it is several times the whole."""
    return word("times", lang, times=f"{share:.0f}") if share >= MANIFOLD else f"{share:.0%}"


def why_line(diagnosis: Diagnosis, figures: Mapping[str, Figure], lang: Lang) -> str:
    """The leading causes by name, and how sure each is, as a line of its own; empty where none has a name."""
    leading = listed_causes(diagnosis)
    text = brief_causes(leading, figures, lang, [""] * len(leading))
    return f"{why_title(leading, lang)}{colon(lang)}{sentence(text, lang)}" if text else ""


def listed_causes(diagnosis: Diagnosis, most: int = CAUSES) -> list[Ruling]:
    """The leading causes that a line names. One without a figure that is the memory of which the banner says that it ran out is no answer
    to why."""
    leading = [cause for cause in diagnosis.judgement.causes if not cause.also_true][:most]
    if diagnosis.verdict.status != "oom" or not on_host(diagnosis):
        return leading
    return [cause for cause in leading if cause.cause not in vocabulary.having("is_the_host") or cause.accounts_for is not None]


def assumption(diagnosis: Diagnosis, lang: Lang) -> str:
    """What the first leading cause that has a name takes for granted, as a line of its own; empty where it takes nothing."""
    named = (cause for cause in diagnosis.judgement.causes if not cause.also_true and cause.cause != "unknown")
    leading = next(named, None)
    if leading is None or leading.assumes is None:
        return ""
    return assumption_line(leading.assumes, lang)


def assumption_line(assumes: Text, lang: Lang) -> str:
    return word("assumes", lang, what=assumes.to(lang).rstrip(".。"))


def name_with_owner(cause: Ruling, lang: Lang) -> str:
    """The display name of a cause; of a bug in a release that is known, with the name of its library."""
    library = library_of(rule_files.table("versions"), cause.rule) if cause.cause == vocabulary.bad_release() else ""
    if not library:
        return name_of_cause(cause.cause, lang)
    version = declared(f"version.{library}")
    return word("bug_in", lang, library=(version.package if version is not None else "") or library)


def name_of_cause(cause: str, lang: Lang) -> str:
    """The display name of a cause; the word itself for causes of user rules."""
    try:
        return phrase(f"manual.cause_{cause}").to(lang)
    except KeyError:
        return cause


def no_cause(diagnosis: Diagnosis, lang: Lang, known_part: str = "") -> str:
    """The sentence for a failure without a leading cause: what else is true, whether a config is missing, and the estimate, or the largest
    part of the card that is known."""
    configurable = all((fact.name, fact.value) != ("run.takes", "none") for fact in diagnosis.facts)  # else no network runs
    alone = "_from_log" if configurable and all(source.kind in ("log", "snapshot") for source in diagnosis.inputs) else ""
    estimate = estimate_summary(diagnosis, lang) or known_part
    also_true = word("next_cause", lang).join(cause.title.to(lang).rstrip(".。") for cause in diagnosis.judgement.causes)
    text = word(f"no_leading_cause{alone}", lang, causes=also_true) if also_true else word(f"no_cause{alone}", lang)
    return f"{text}{'' if lang == 'zh' else ' '}{estimate}" if estimate else text


def estimate_summary(diagnosis: Diagnosis, lang: Lang) -> str:
    """The estimate for an unknown card and its largest part; empty where the model is unknown."""
    ledger = fit.foremost(diagnosis.ledgers)
    moment = None if ledger is None or ledger.capacity is not None else ledger.moment(ledger.failing) or ledger.peak
    groups = {term.group: moment.of(term.group) for term in moment.terms} if moment is not None else {}
    if moment is None or "weights" not in groups or on_host(diagnosis):
        return ""
    largest = max(groups, key=lambda group: groups[group].bytes)
    name, size = phrase(f"plan.group_{largest}").to(lang), amount(groups[largest], lang)
    return word("counted", lang, size=amount(moment.total, lang), what=name, much=size)


def repeats_headline(explanation: str, headline: str) -> bool:
    """Whether the headline already contains this text."""
    return explanation.strip(" .。").casefold() in headline.casefold()


def leading_notices(diagnosis: Diagnosis) -> tuple[Notice, ...]:
    """The notices that stand before everything but the headline: inputs that could not be read first, then what changes the reading."""
    leading = [notice for notice in diagnosis.notices if notice.level == "error" or notice.code in LEADING_NOTICES]
    return tuple(sorted(leading, key=lambda notice: notice.level != "error"))


def important_notices(diagnosis: Diagnosis) -> tuple[Notice, ...]:
    """Warnings, and information about which run is diagnosed, without the leading ones."""
    leading = leading_notices(diagnosis)
    others = (notice for notice in diagnosis.notices if notice not in leading)
    return tuple(notice for notice in others if notice.level != "info" or notice.code in RUN_NOTICES)


def on_host(diagnosis: Diagnosis) -> bool:
    """Whether host memory failed; the card's figures then explain nothing."""
    return diagnosis.verdict.status in ("oom", "suspected") and families.of(diagnosis.verdict.family).memory == "host"


def banner(diagnosis: Diagnosis, lang: Lang) -> str:
    """The verdict in a few words."""
    if diagnosis.asked == "check":
        return word(f"banner_check_{'open' if diagnosis.fits == 'likely' and fit.may_exceed(diagnosis.ledgers) else diagnosis.fits}", lang)
    status, family = diagnosis.verdict.status, diagnosis.verdict.family
    root = diagnosis.verdict.event
    if status == "oom" and root is not None and not diagnosis.events[root].fatal:
        return word("banner_survived_host" if families.of(family).memory == "host" else "banner_survived", lang)
    is_host = status == "oom" and families.of(family).memory == "host"
    return word(f"banner_host_{families.of(family).place}" if is_host else f"banner_{status}", lang)


def is_good_news(diagnosis: Diagnosis) -> bool:
    """Whether the banner reports no memory failure, or a job that surely fits."""
    return diagnosis.fits == "yes" if diagnosis.asked == "check" else diagnosis.verdict.status in ("none", "lookalike")


def failure_place(diagnosis: Diagnosis) -> str:
    """The place of the failure, such as error.log:84; empty for a check before a run."""
    return "" if diagnosis.root is None or diagnosis.asked == "check" else places(diagnosis.root.evidence[:1])


def file_stem(diagnosis: Diagnosis) -> str:
    """A telling name for a file with the answer: the verdict and the first cause."""
    status = f"fits-{diagnosis.fits}" if diagnosis.asked == "check" else diagnosis.verdict.status
    causes = [cause.cause for cause in diagnosis.judgement.causes if cause.cause != "unknown"][:1]
    return re.sub(r"[^a-z0-9]+", "-", "-".join(["oomdoctor", status, *causes]).lower()).strip("-")


def card_or_rank(event: Event, lang: Lang) -> str:
    """The card or rank of a failure; empty if the log names neither."""
    if event.gpu is not None and event.rank is not None and event.gpu != event.rank:
        return f"{word('event_of_gpu', lang, gpu=event.gpu)}{comma(lang)}{word('event_of_rank', lang, rank=event.rank)}"
    if event.gpu is not None:
        return word("event_of_gpu", lang, gpu=event.gpu)
    return "" if event.rank is None else word("event_of_rank", lang, rank=event.rank)


def failure_line(diagnosis: Diagnosis, number: int, lang: Lang) -> str:
    """A failure in one line: kind, process, phase, what it is a consequence of, count and place."""
    event = diagnosis.events[number]
    parts = [
        event.exception or event.family,
        card_or_rank(event, lang),
        "" if event.phase == "unknown" else phase(event.phase, lang),
        word("root", lang) if number == diagnosis.verdict.event else "",
        "" if event.consequence_of is None else word("event_consequence", lang, index=event.consequence_of + 1),
        word("event_folded", lang, count=event.count) if event.count > 1 else "",
        places(event.evidence),
    ]
    return comma(lang).join(filter(None, parts))


def foreign_memory(diagnosis: Diagnosis) -> Size | None:
    """Memory of the card that belongs to other processes; None if it may be this process's own: its context, or, where nothing says how
    much the process holds and no cause is another process, what lies outside torch's allocator."""
    facts = {fact.name: fact.value for fact in diagnosis.facts if fact.name in ("log.foreign", "log.not_torch", "log.other_processes")}
    value = facts.pop("log.foreign", None)
    is_told = bool(facts) or any(cause.cause in vocabulary.having("held_by_others") for cause in diagnosis.judgement.causes)
    return value if is_told and isinstance(value, Size) and value.low >= NEGLIGIBLE else None


def printed_memory(diagnosis: Diagnosis, event: Event, lang: Lang) -> str:
    """The figures that the message prints about the card; empty if there are fewer than two."""
    sizes = {fact.name: fact.value for fact in diagnosis.facts if isinstance(fact.value, Size)}
    parts = [
        ("part_allocated", event.allocated or event.mps_allocated),
        ("part_asleep", sizes.get("log.asleep")),
        ("part_unallocated", sizes.get("log.reserved_unallocated", event.reserved_unallocated)),
        ("part_private", event.private_pools),
        ("part_not_torch", sizes.get("log.not_torch") or event.other_allocations),
        ("part_engine", sizes.get("log.engine_in_use")),
        ("part_foreign", foreign_memory(diagnosis)),
        ("part_free", event.free),
        ("part_requested", event.requested),
    ]
    figures = [word(key, lang, size=amount(size, lang)) for key, size in parts if size is not None]
    if len(figures) < 3:
        return ""
    if (capacity := event.capacity or event.max_allowed) is not None:
        figures.insert(-1 if event.requested is not None else len(figures), word("of_capacity", lang, capacity=amount(capacity, lang)))
    return word("on_the_card", lang, parts=semicolon(lang).join(figures))


#: What the CUDA allocator asks the card for, whatever small tensor needs room.
ALLOCATOR_BLOCKS = ("2.00 MiB", "20.00 MiB")


def request_text(diagnosis: Diagnosis, lang: Lang, tick: str = "") -> str:
    """The tensor behind the failed request, its formula between `tick`s; empty if no tensor of this run has that size."""
    attribution = next((candidate for candidate in diagnosis.attributions if candidate.event == diagnosis.verdict.event), None)
    if attribution is None:
        size = diagnosis.root.requested if diagnosis.root else None
        return word("request_names_nothing", lang, size=str(size)) if str(size) in ALLOCATOR_BLOCKS else ""
    key = "request_at_least" if attribution.at_least else "request_is" if attribution.named else "request_may_be"
    if attribution.by_frame:
        return word("request_by_frame", lang, tensor=attribution.tensor.to(lang))
    also = word("request_also_one", lang) if attribution.coincidence == 1 else word("request_also", lang, count=attribution.coincidence)
    alike = [also] if attribution.coincidence else []
    if attribution.span is not None:
        alike.insert(0, word("request_span", lang, low=f"{attribution.span[0]:,}", high=f"{attribution.span[1]:,}"))
    return word(
        key,
        lang,
        tensor=attribution.tensor.to(lang),
        numbers=f"{tick}{attribution.numbers}{tick}",
        bytes=f"{attribution.bytes:,}",
        also=bracketed(semicolon(lang).join(alike), lang) if alike else "",
    )


def measured_deviation(diagnosis: Diagnosis) -> str:
    """`below` or `above`: how the estimate deviates from the measurement; empty if they agree or nothing was measured."""
    verdict = next((fact.value for fact in diagnosis.facts if fact.name == "ledger.verdict"), None)
    return str(verdict) if verdict in ("below", "above") else ""
