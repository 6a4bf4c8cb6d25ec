"""What helps most often in a regime (rules/cures.yaml, rules/costs.yaml): the list for failures whose cause nothing tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diagnose import rule_files, vocabulary
from diagnose.decide.verdict import Verdict
from diagnose.phrases import phrase, same
from diagnose.plan.pricing.context import USUAL, Job, Offer

#: How many remedies the list has, and how many are tried for it.
ENTRIES, TRIED = 3, 14

#: Where nobody knows the regime: what to try if it trains, and if it does not.
EITHER = ("train", "infer")


def usual(job: Job) -> Verdict:
    """A verdict that calls for what helps most often in this regime and phase: no cause, and no proof of one."""
    words = list(dict.fromkeys(word for regime in regimes(job) for word in list(rates(regime, phase(job)))[:TRIED]))
    nothing = same("")
    return Verdict(USUAL, "unknown", "likely", "", None, phrase("plan.usual"), nothing, None, True, (), tuple(words), "")


def regimes(job: Job) -> tuple[str, ...]:
    return EITHER if job.regime == "unknown" else (job.regime,)


def phase(job: Job) -> str:
    """The phase as the table has it."""
    return "host" if job.on_host else job.book.word("log.phase") or "unknown"


def rates(regime: str, phase: str) -> dict[str, float]:
    """How often each remedy cured a labelled failure of this regime and phase, less a part of how often it was useless or harmful;
    the best first.
    Where few were labelled in this phase, those of the whole regime stand in; host memory and cards are never mixed."""
    phases: Mapping[str, Any] = rule_files.table("cures").get(regime, {}).get("phases", {})
    pseudo = rule_files.table("costs")["pseudo"]
    own = phases.get(phase, {"of": 0, "helped": {}, "harmed": {}})
    alike = [entry for name, entry in phases.items() if (name == "host") == (phase == "host")]
    words = {word for entry in alike for word in entry["helped"]}
    of = sum(entry["of"] for entry in alike) + pseudo["none"]
    found = {}
    for word in words:
        whole = sum(_net(entry, word) for entry in alike) / of
        found[word] = (_net(own, word) + pseudo["regime"] * whole) / (own["of"] + pseudo["regime"])
    return {word: rate for word, rate in sorted(found.items(), key=lambda pair: (-pair[1], pair[0])) if rate > 0}


def _net(entry: Mapping[str, Any], word: str) -> float:
    return float(entry["helped"].get(word, 0) - rule_files.table("costs")["wasted"] * entry["harmed"].get(word, 0))


def cost(offer: Offer) -> float:
    """What trying a remedy costs: another run, and its price in results, speed and effort."""
    table, price = rule_files.table("costs"), offer.remedy.price
    return float(table["run"] + table["results"][price.results] + table["speed"][price.speed] + table["effort"][price.effort])


def is_usual(offer: Offer) -> bool:
    """Whether only the list calls for it."""
    return offer.call is not None and offer.call.cause.rule == USUAL


def listed(offers: Sequence[Offer], job: Job) -> list[Offer]:
    """The entries of the list: those of the usual remedies that pass, by benefit and cost; in an unknown regime two for each."""
    best = {regime: rates(regime, phase(job)) for regime in regimes(job)}
    if len(best) == 1:
        (rate,) = best.values()
        return _best(offers, rate)[:ENTRIES]
    found: list[Offer] = []
    for rate in best.values():
        found += [offer for offer in _best(offers, rate) if offer.id not in [other.id for other in found]][:2]
    return found


def _best(offers: Sequence[Offer], rate: Mapping[str, float]) -> list[Offer]:
    able = [offer for offer in offers if offer.id in rate and not is_blind_guess(offer)]
    return sorted(able, key=lambda offer: -rate[offer.id] / cost(offer))


def is_blind_guess(offer: Offer) -> bool:
    """Whether it answers something that evidence would have to show, and no rule for this regime proposes it all the same."""
    of_regime = any(name == "run.regime" for line in offer.rule.where for name in line.names)
    return offer.id in vocabulary.having("needs_evidence") and not of_regime
