"""The one-sentence answer: who failed where, what was being allocated, what filled the memory."""

from __future__ import annotations

from collections.abc import Sequence

from diagnose.budget.derived import ON_HOST
from diagnose.budget.ledger import Attribution, Ledger
from diagnose.judge.verdict import Judgement
from diagnose.parse.event import Event
from diagnose.phrases import Text, phrase, same
from diagnose.units import show

#: Families whose memory is the host's.
HOST = ON_HOST


def headline(event: Event | None, attributions: Sequence[Attribution], ledgers: Sequence[Ledger], judgement: Judgement) -> Text:
    """At most three sentences: the failure, then what the first cause says, then the second's title."""
    if event is None:
        return checked(ledgers[0]) if ledgers else phrase("headline.none")
    if event.status == "lookalike":
        on_chip = event.family == "triton_shared"
        return phrase("headline.on_chip") if on_chip else phrase("headline.lookalike", what=same(event.exception or event.family))
    if event.status == "suspected":
        return sentence(phrase("headline.suspected", who=who(event), phase=in_phase(event)))
    if event.family in HOST:
        opening = phrase("headline.host", who=who(event), phase=in_phase(event), request=held(event, attributions))
    else:
        opening = phrase("headline.oom", who=who(event), phase=in_phase(event), request=request(event, attributions))
    return joined([sentence(opening), *because(judgement)])


def because(judgement: Judgement) -> list[Text]:
    """What the first cause says with its figures, and the title of the next that is more than also true."""
    leading = [cause for cause in judgement.causes if not cause.also_true]
    return [sentence(cause.explanation if index == 0 else cause.title) for index, cause in enumerate(leading[:2])]


def request(event: Event, attributions: Sequence[Attribution]) -> Text:
    if event.requested is None:
        return phrase("headline.asked_nothing")
    if event.family in ("vllm_kv", "sglang_kv") and event.phase == "kv_cache":
        room = phrase("headline.available", free=event.free) if event.free else same("")
        return phrase("headline.needed", requested=event.requested, free=room)
    best = attributions[0] if attributions else None
    named = best is not None and (best.exact or best.at_least) and best.agrees
    return phrase(
        "headline.asked",
        requested=event.requested,
        tensor=phrase("headline.tensor", name=best.tensor) if best is not None and named else same(""),
        free=phrase("headline.free", free=event.free) if event.free else same(""),
    )


def held(event: Event, attributions: Sequence[Attribution]) -> Text:
    """What a message about host memory prints: a request, or what the killed process held and the node has."""
    if event.requested is not None or event.process_in_use is None or not event.process_in_use.bytes:
        return request(event, attributions)
    node = phrase("headline.of_node", capacity=show(event.capacity.bytes)) if event.capacity else same("")
    return phrase("headline.held", held=show(event.process_in_use.bytes), node=node)


def who(event: Event) -> Text:
    """The card and rank that failed, as well as they are known."""
    if event.gpu is not None and event.rank is not None:
        name = phrase("headline.gpu_rank", gpu=event.gpu, rank=event.rank)
    elif event.gpu is not None:
        name = phrase("headline.gpu", gpu=event.gpu)
    elif event.rank is not None:
        name = phrase("headline.rank", rank=event.rank)
    elif event.role not in (None, "train"):
        return phrase("headline.process", role=phrase(f"headline.role_{event.role}"))
    else:
        return phrase("headline.job")
    return phrase("headline.role", who=name, role=phrase(f"headline.role_{event.role}")) if event.role not in (None, "train") else name


def in_phase(event: Event) -> Text:
    return same("") if event.phase == "unknown" else phrase("headline.in_phase", phase=phrase(f"phase.{event.phase}"))


def checked(ledger: Ledger) -> Text:
    """Before a run: what the largest moment needs."""
    peak = ledger.peak
    over = peak is not None and ledger.usable is not None and peak.total.low > ledger.usable.high
    if peak is None or not (ledger.complete or over):
        return phrase("headline.check_unknown")
    of = phrase("headline.check_of", usable=show(ledger.usable.bytes)) if ledger.usable else phrase("headline.check_no_card")
    return phrase(
        "headline.check" if ledger.complete else "headline.check_least",
        peak=show(peak.total.bytes),
        moment=phrase(f"moment.{peak.name}"),
        of=of,
    )


def sentence(text: Text) -> Text:
    """The text as a sentence of its own: a capital (a key or a figure stays as it is) and a full stop."""
    first = text.en.partition(" ")[0]
    english = text.en[:1].upper() + text.en[1:] if first.isalpha() else text.en
    return Text(english.rstrip(".") + ".", text.zh.rstrip("。") + "。") if text.en else text


def joined(parts: Sequence[Text]) -> Text:
    return Text(" ".join(part.en for part in parts if part.en), "".join(part.zh for part in parts if part.zh))
