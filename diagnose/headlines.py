"""The one-sentence answer: who failed where, what was being allocated, what filled the memory."""

from __future__ import annotations

from collections.abc import Sequence

from diagnose import families
from diagnose.budget.model.ledger import Attribution, Ledger
from diagnose.decide.verdict import Judgement, Verdict
from diagnose.parse.model.event import Event
from diagnose.phrases import Text, phrase, same
from diagnose.plan.pricing import fit
from diagnose.units import Size, show


def headline(event: Event | None, attributions: Sequence[Attribution], ledgers: Sequence[Ledger], judgement: Judgement) -> Text:
    """At most three sentences: the failure, then what the first cause says, then the second's title."""
    if event is None:
        return checked(ledgers) if ledgers else phrase("headline.none")
    if event.status == "lookalike":
        return phrase("headline.lookalike", what=why(event))
    name, phase = everyone(event), in_phase(event)
    if event.status == "suspected":
        return joined([sentence(suspicion(event, name, phase)), *supposing(judgement)])
    kind, asked = (
        ("host", held(event, attributions)) if families.of(event.family).memory == "host" else ("oom", request(event, attributions))
    )
    opening = phrase(f"headline.{kind}" if event.fatal else f"headline.{kind}_survived", who=name, phase=phase, request=asked)
    return joined([sentence(opening), *because(judgement)])


def because(judgement: Judgement) -> list[Text]:
    """What the first cause says with its figures, and the title of the next that is more than also true, with how sure it is."""
    first, second = leading(judgement)[:1], leading(judgement)[1:2]
    return [sentence(cause.explanation) for cause in first] + [
        sentence(cause.title if cause.outcome == "fires" else phrase("headline.likely", what=bare(cause.title))) for cause in second
    ]


def leading(judgement: Judgement) -> list[Verdict]:
    """The causes that are more than also true, best first."""
    return [cause for cause in judgement.causes if not cause.also_true]


def suspicion(event: Event, name: Text, phase: Text) -> Text:
    """Who died, and that nothing proves it was memory."""
    if event.reason:
        return phrase("headline.suspected_because", who=name, phase=phase, why=why(event))
    return phrase("headline.suspected" if event.fatal else "headline.suspected_survived", who=name, phase=phase)


def supposing(judgement: Judgement) -> list[Text]:
    """What the first cause says, supposing that memory was the reason."""
    return [sentence(phrase("headline.supposing", why=cause.explanation)) for cause in leading(judgement)[:1]]


def request(event: Event, attributions: Sequence[Attribution]) -> Text:
    if event.reason:
        return phrase("headline.asked_because", why=why(event))
    if event.requested is None:  # an engine's own checks count tokens and shares: the cause says what they say
        return same("") if families.of(event.family).engine else phrase("headline.asked_nothing")
    if families.of(event.family).engine and event.phase == "kv_cache":
        room = phrase("headline.available", free=event.free) if event.free else same("")
        return phrase("headline.needed", requested=event.requested, free=room)
    best = attributions[0] if attributions else None
    named = best is not None and (best.exact or best.at_least) and best.agrees
    return phrase(
        "headline.asked",
        requested=readable(event.requested),
        tensor=phrase("headline.tensor", name=best.tensor) if best is not None and named else same(""),
        free=left(event),
    )


def left(event: Event) -> Text:
    """What was free, or the cap of the process where that and not the card was used up."""
    capped = event.allowed is not None and event.requested is not None and (event.free is None or event.free.low >= event.requested.high)
    if capped:
        return phrase("headline.capped", allowed=readable(event.allowed))
    return phrase("headline.free", free=readable(event.free)) if event.free else same("")


def readable(size: Size | None) -> Text:
    """A size as printed; one that is printed in bytes with what that is."""
    if size is None:
        return same("")
    in_bytes = size.text.endswith(" bytes") and size.bytes >= 1 << 20
    return phrase("headline.in_bytes", size=show(size.bytes), printed=size.text) if in_bytes else same(str(size))


def held(event: Event, attributions: Sequence[Attribution]) -> Text:
    """What a message about host memory prints: a request, or what the killed process held and the node has."""
    if event.requested is not None:
        return request(event, attributions)
    if event.process_in_use is None or not event.process_in_use.bytes:
        limit = event.capacity if families.of(event.family).limited and not event.reason else None
        return request(event, attributions) if limit is None else phrase("headline.limit", capacity=show(limit.bytes))
    whose = "headline.of_limit" if families.of(event.family).limited else "headline.of_node"
    node = phrase(whose, capacity=show(event.capacity.bytes)) if event.capacity else same("")
    return phrase("headline.held", held=show(event.process_in_use.bytes), node=node)


def why(event: Event) -> Text:
    """Why it is no failure of memory, or no proof of one."""
    return phrase(f"reason.{event.reason}") if event.reason else same(event.exception or event.family)


def who(event: Event) -> Text:
    """The card and rank that failed, as well as they are known."""
    if event.gpu is not None and event.rank is not None:
        name = phrase("headline.gpu_rank", gpu=event.gpu, rank=event.rank)
    elif event.gpu is not None:
        name = phrase("headline.gpu", gpu=event.gpu)
    elif event.rank is not None:
        name = phrase("headline.rank", rank=event.rank)
    elif event.role not in (None, "train"):
        return phrase("headline.process", role=acting(event))
    else:
        return phrase("headline.job")
    return phrase("headline.role", who=name, role=acting(event)) if event.role not in (None, "train") else name


def acting(event: Event) -> Text:
    """The role of the process; an engine may serve requests as well as rollouts."""
    return phrase("headline.engine") if event.role == "engine" else phrase(f"ledger.role_{event.role}")


def everyone(event: Event) -> Text:
    """Who failed, and how many more in the same way."""
    return who(event) if event.count < 2 else phrase("headline.and_more", who=who(event), count=event.count - 1)


def in_phase(event: Event) -> Text:
    return same("") if event.phase == "unknown" else phrase("headline.in_phase", phase=phrase(f"phase.{event.phase}"))


def checked(ledgers: Sequence[Ledger]) -> Text:
    """Before a run: what the largest moment needs, of the role that sits worst on its card."""
    ledger = fit.foremost(ledgers)
    peak = ledger.peak if ledger else None
    over = ledger is not None and peak is not None and ledger.usable is not None and peak.total.low > ledger.usable.high
    if ledger is None or peak is None or not (ledger.complete or over):
        return phrase("headline.check_unknown")
    of = phrase("headline.check_of", usable=show(ledger.usable.bytes)) if ledger.usable else phrase("headline.check_no_card")
    who = phrase("headline.check_role", role=role_of(ledger)) if len(ledgers) > 1 else phrase("headline.check_it")
    key = "headline.check" if ledger.complete else "headline.check_least"
    said = phrase(key, who=who, peak=show(peak.total.bytes), moment=phrase(f"moment.{peak.name}"), of=of)
    unknown = [role_of(each) for each in ledgers if each is not ledger and not each.complete]
    return joined([said, *(phrase("headline.check_role_unknown", role=role) for role in unknown)])


def contradicted(wrong: Sequence[Text]) -> Text:
    """Before a run whose settings cannot all be meant: which, and that no estimate of them means anything."""
    return joined([sentence(each) for each in wrong] + [phrase("headline.check_contradicted")])


def role_of(ledger: Ledger) -> Text:
    return same(ledger.role) if ledger.role == "train" else phrase(f"ledger.role_{ledger.role}")


def sentence(text: Text) -> Text:
    """The text as a sentence of its own: a capital (a key or a figure stays as it is) and a full stop."""
    first = text.en.partition(" ")[0]
    english = text.en[:1].upper() + text.en[1:] if first.isalpha() else text.en
    ended = bare(Text(english, text.zh))
    return Text(ended.en + ".", ended.zh + "。") if text.en else text


def bare(text: Text) -> Text:
    """The text without a full stop."""
    return Text(text.en.rstrip("."), text.zh.rstrip("。"))


def joined(parts: Sequence[Text]) -> Text:
    return Text(" ".join(part.en for part in parts if part.en), "".join(part.zh for part in parts if part.zh))
