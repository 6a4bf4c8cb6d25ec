"""The headline of a diagnosis: which process failed in which phase, what it was allocating, what filled the memory."""

from __future__ import annotations

from collections.abc import Sequence

from diagnose import catalogue, families, vocabulary
from diagnose.budget.derived.message_facts import KEPT_BACK
from diagnose.budget.model.ledger import Attribution, Ledger
from diagnose.decide.verdict import Judgement, Verdict
from diagnose.parse.model.event import Event
from diagnose.phrases import Text, phrase, same
from diagnose.plan.pricing import fit
from diagnose.units import Size, is_in_small_unit, show

#: A request that exceeds what is free by so small a part of it is said as a difference.
CLOSE = 0.01
#: A request that at most so many kinds of card could hold is larger than most.
FEW_CARDS = 6


def headline(
    event: Event | None,
    attributions: Sequence[Attribution],
    ledgers: Sequence[Ledger],
    judgement: Judgement,
    card: Size | None = None,
) -> Text:
    """The failure in one sentence, and the explanation of the first cause. `card`: its memory, where the message does not print it."""
    if event is None:
        return check_headline(ledgers) if ledgers else phrase("headline.none")
    if event.status == "lookalike":
        return phrase("headline.lookalike", what=reason_text(event))
    name, phase = failed_processes(event), phase_clause(event)
    if event.status == "suspected":
        return join_texts([as_sentence(suspected_failure(event, name, phase)), *supposed_cause(judgement)])
    on_host = families.of(event.family).memory == "host"
    key = "host" if on_host else "oom"
    request = host_request_clause(event, attributions) if on_host else request_clause(event, attributions, card)
    memory = phrase(f"headline.host_{families.of(event.family).place}")
    opening = phrase(
        f"headline.{key}" if event.fatal else f"headline.{key}_survived", who=name, phase=phase, request=request, memory=memory
    )
    return join_texts([as_sentence(opening), *cause_sentences(judgement)])


def cause_sentences(judgement: Judgement) -> list[Text]:
    """The explanation of the first leading cause, and where that is no kind of memory, the title of the second, which is. Every surface
    lists the others with their certainty."""
    causes = leading_causes(judgement)
    named = [cause for cause in causes if cause.cause != "unknown"] or causes  # that nothing is known is no news beside what is
    memory = vocabulary.having("fills_card") | vocabulary.having("stays_in_memory")
    second = named[1:2] if named and named[0].accounts_for is None and named[0].cause not in memory else []
    titles = (
        cause.title if cause.outcome == "fires" else phrase("headline.likely", what=without_full_stop(cause.title)) for cause in second
    )
    return [as_sentence(cause.explanation) for cause in named[:1]] + [as_sentence(title) for title in titles]


def leading_causes(judgement: Judgement) -> list[Verdict]:
    """The causes not marked `also_true`, best first."""
    return [cause for cause in judgement.causes if not cause.also_true]


def suspected_failure(event: Event, name: Text, phase: Text) -> Text:
    """The failure where memory is only suspected."""
    if event.reason in ("said", "unnamed"):  # no log speaks
        return phrase(f"headline.suspected_{event.reason}", phase=phase)
    if event.reason:
        return phrase("headline.suspected_because", who=name, phase=phase, why=reason_text(event))
    return phrase("headline.suspected" if event.fatal else "headline.suspected_survived", who=name, phase=phase)


def supposed_cause(judgement: Judgement) -> list[Text]:
    """The explanation of the first cause, under the assumption that memory was the reason; that nothing is known supposes nothing."""
    return [
        as_sentence(cause.explanation if cause.outcome == "possible" else phrase("headline.supposing", why=cause.explanation))
        for cause in leading_causes(judgement)[:1]
    ]


def request_clause(event: Event, attributions: Sequence[Attribution], card: Size | None = None) -> Text:
    if event.reason:
        return phrase("headline.asked_because", why=reason_text(event))
    if event.requested is None:  # an engine's own checks count tokens and shares: the cause says what they say
        return same("") if families.of(event.family).engine else phrase("headline.asked_nothing")
    if families.of(event.family).engine and event.phase == "kv_cache":
        room = phrase("headline.available", free=event.free) if event.free else same("")
        return phrase("headline.needed", requested=event.requested, free=room)
    if event.phase == "compile" and event.capacity is not None and families.of(event.family).shared:  # XLA adds up a whole program
        return phrase("headline.program", requested=readable_size(event.requested), capacity=readable_size(event.capacity))
    best = attributions[0] if attributions else None
    is_named = best is not None and best.named
    return phrase(
        "headline.asked",
        requested=readable_size(event.requested),
        tensor=phrase("headline.tensor", name=best.tensor) if best is not None and is_named else same(""),
        free=free_clause(event),
        larger=larger_clause(event, card),
    )


def larger_clause(event: Event, card: Size | None) -> Text:
    """That one piece was asked for which no card in use could hold, however empty; where the card is not known, how many could."""
    if event.requested is None or families.of(event.family).memory == "host":
        return same("")
    if (capacity := event.capacity or card) is not None:
        beyond = event.requested.low > capacity.high
        return phrase("headline.larger_than_card", capacity=readable_size(capacity)) if beyond else same("")
    holding = catalogue.cards_holding(event.requested)
    if len(holding) > FEW_CARDS:
        return same("")
    return phrase("headline.larger_than_most", cards=same(", ".join(holding))) if holding else phrase("headline.larger_than_all")


def free_clause(event: Event) -> Text:
    """The free memory, or the process's own limit if that was exhausted and not the card."""
    is_capped = event.allowed is not None and event.requested is not None and (event.free is None or event.free.low >= event.requested.high)
    if is_capped:
        return phrase("headline.capped", allowed=readable_size(event.allowed))
    if event.free is None or event.requested is None:
        return phrase("headline.free", free=readable_size(event.free)) if event.free else same("")
    if event.free.low >= event.requested.high:
        near = event.free.low - event.requested.high <= KEPT_BACK
        return phrase("headline.free_in_pieces" if near else "headline.free_yet_refused", free=readable_size(event.free))
    if event.requested.bytes - event.free.bytes <= CLOSE * event.requested.bytes:  # two figures that print alike would say nothing
        return phrase("headline.just_short", short=show(event.requested.high - event.free.low))
    return phrase("headline.free", free=readable_size(event.free))


def readable_size(size: Size | None) -> Text:
    """A size as printed; many of a small unit also in larger ones."""
    if size is None:
        return same("")
    return phrase("headline.in_bytes", size=show(size.bytes), printed=size.text) if is_in_small_unit(size) else same(str(size))


def host_request_clause(event: Event, attributions: Sequence[Attribution]) -> Text:
    """For failures of host memory: the request, else the memory of the killed process and of its node or container."""
    if event.requested is not None:
        return request_clause(event, attributions)
    if event.process_in_use is None or not event.process_in_use.bytes:
        if event.capacity is None or event.reason:
            return request_clause(event, attributions)
        return phrase("headline.limit" if families.of(event.family).limited else "headline.of_node", capacity=show(event.capacity.bytes))
    key = "headline.of_limit" if families.of(event.family).limited else "headline.of_node"
    node = phrase(key, capacity=show(event.capacity.bytes)) if event.capacity else same("")
    return phrase("headline.held", held=show(event.process_in_use.bytes), node=node)


def reason_text(event: Event) -> Text:
    """Why the event is no memory failure, or no proof of one."""
    return phrase(f"reason.{event.reason}") if event.reason else same(event.exception or event.family)


def failed_process(event: Event) -> Text:
    """The card and rank that failed, as far as known."""
    if event.gpu is not None and event.rank is not None:
        name = phrase("headline.gpu_rank", gpu=event.gpu, rank=event.rank)
    elif event.gpu is not None:
        name = phrase("headline.gpu", gpu=event.gpu)
    elif event.rank is not None:
        name = phrase("headline.rank", rank=event.rank)
    elif event.role not in (None, "train"):
        return phrase("headline.process", role=role_name(event))
    else:
        return phrase("headline.job")
    return phrase("headline.role", who=name, role=role_name(event)) if event.role not in (None, "train") else name


def role_name(event: Event) -> Text:
    """The name of the process's role; an inference engine may serve requests or rollouts."""
    return phrase("headline.engine") if event.role == "engine" else phrase(f"ledger.role_{event.role}")


#: So many cards or ranks that failed alike are named one by one.
NAMED = 4


def failed_processes(event: Event) -> Text:
    """The process that failed, with the others that failed alike: by card or rank where the log tells all of them, else their number."""
    if event.count < 2:
        return failed_process(event)
    alike = (event, *event.members)
    for key, numbers in (("headline.gpus", {each.gpu for each in alike}), ("headline.ranks", {each.rank for each in alike})):
        if None not in numbers and event.role in (None, "train") and len(numbers) == event.count <= NAMED:
            *others, last = sorted(str(number) for number in numbers)
            return phrase(key, others=Text(", ".join(others), "、".join(others)), last=last)
    return phrase("headline.and_more", who=failed_process(event), count=event.count - 1)


def phase_clause(event: Event) -> Text:
    return same("") if event.phase == "unknown" else phrase("headline.in_phase", phase=phrase(f"phase.{event.phase}"))


def check_headline(ledgers: Sequence[Ledger]) -> Text:
    """Headline of `check`: the peak of the role that fits worst on its card."""
    ledger = fit.foremost(ledgers)
    peak = ledger.peak if ledger else None
    over = ledger is not None and peak is not None and ledger.usable is not None and peak.total.low > ledger.usable.high
    if ledger is None or peak is None or not (ledger.complete or over):
        return phrase("headline.check_unknown")
    capacity = phrase("headline.check_of", usable=show(ledger.usable.bytes)) if ledger.usable else phrase("headline.check_no_card")
    failed_process = phrase("headline.check_role", role=ledger_role(ledger)) if len(ledgers) > 1 else phrase("headline.check_it")
    key = "headline.check" if ledger.complete else "headline.check_least"
    need = peak.total.bytes if ledger.complete else peak.total.low
    headline = phrase(key, who=failed_process, peak=show(need), moment=phrase(f"moment.{peak.name}"), of=capacity)
    unknown = [ledger_role(other) for other in ledgers if other is not ledger and not other.complete]
    return join_texts([headline, *(phrase("headline.check_role_unknown", role=role) for role in unknown)])


def contradiction_headline(contradictions: Sequence[Text]) -> Text:
    """Headline of `check` for contradictory settings, which have no meaningful estimate."""
    return join_texts([as_sentence(contradiction) for contradiction in contradictions] + [phrase("headline.check_contradicted")])


def ledger_role(ledger: Ledger) -> Text:
    return same(ledger.role) if ledger.role == "train" else phrase(f"ledger.role_{ledger.role}")


def as_sentence(text: Text) -> Text:
    """The text as a sentence: with a full stop, and a capital unless it begins with an identifier, a number or a name such as cuDNN."""
    first = text.en.partition(" ")[0].removesuffix(",")
    english = text.en[:1].upper() + text.en[1:] if first.isalpha() and first.islower() else text.en
    without_stop = without_full_stop(Text(english, text.zh))
    return Text(without_stop.en + ".", without_stop.zh + "。") if text.en else text


def without_full_stop(text: Text) -> Text:
    """The text without its full stop."""
    return Text(text.en.rstrip("."), text.zh.rstrip("。"))


def join_texts(parts: Sequence[Text]) -> Text:
    return Text(" ".join(part.en for part in parts if part.en), "".join(part.zh for part in parts if part.zh))
