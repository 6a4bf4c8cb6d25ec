"""What is most likely to help where no cause is known for sure: how often each remedy cured labelled failures of each cause
(rules/cures.yaml), times how likely the causes are, over what trying it costs (rules/costs.yaml). Where nobody knows what fits, the
remedies that are on offer stand in the order of how such offers were judged (rules/judged.yaml)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from diagnose import rule_files, vocabulary
from diagnose.decide import hypotheses
from diagnose.decide.regime import LEARNING
from diagnose.decide.verdict import Verdict
from diagnose.phrases import phrase, same
from diagnose.plan.choose.gate import is_conditional, wanted
from diagnose.plan.choose.ranking import is_last_resort
from diagnose.plan.choose.relevance import is_anybodys_script, several
from diagnose.plan.pricing.context import USUAL, Job, Offer
from diagnose.plan.questions.askable_facts import asked_first

#: Bytes below which a saving that the ledger knows is no advice.
TRIFLE = 2**28

#: How many remedies the list has, and how many are tried for it.
ENTRIES, TRIED = 3, 24

#: Where nobody knows the regime: what to try if it trains, and if it does not.
EITHER = ("train", "infer")


def usual(job: Job) -> Verdict:
    """A verdict that calls for what is most likely to help: no cause, and no proof of one."""
    words = list(dict.fromkeys(word for rate in rates(job).values() for word in list(rate)[:TRIED]))
    nothing = same("")
    return Verdict(USUAL, "unknown", "likely", "", None, phrase("plan.usual"), nothing, None, True, (), tuple(words), "")


def rates(job: Job) -> dict[str, dict[str, float]]:
    """By regime that may be meant how likely each remedy is to cure this failure, the likeliest first."""
    regimes = EITHER if job.regime == "unknown" else (job.regime,)
    found = {}
    for regime in regimes:
        book = job.book if regime == job.regime else job.book.changed({"run.regime": regime})
        causes = hypotheses.probabilities(book, job.judgement.causes)
        rate = cure_rates(tuple(causes.items()), regime, hypotheses.phase(book))
        found[regime] = _of_any_sample(_passed_on(rate, regime), job)
    return found


def _passed_on(rate: Mapping[str, float], regime: str) -> Mapping[str, float]:
    """The rates, where a remedy that programs of this regime cannot have passes its own on to the name that it has among them."""
    passed = dict(rate)
    for names in rule_files.table("vocabulary")["by_regime"]:
        able = [word for word in names if regime in (vocabulary.regimes_of(word) or (regime,))]
        if able and (best := max(rate.get(word, 0.0) for word in names)):
            passed[max(able, key=lambda word: rate.get(word, 0.0))] = best
    return passed


def _of_any_sample(rate: Mapping[str, float], job: Job) -> dict[str, float]:
    """The rates with those of smaller samples of whatever kind and of the remedy for one kind taken together: under the name of the kind
    that these samples are shown to be, else under that of any."""
    shown = [word for word in vocabulary.kinds_of_samples() if not job.of_unknown_kind(word)]
    name = job.name_of_smaller_samples
    pictures = rule_files.table("vocabulary")["pixels"]["smaller"] if job.book.word("run.sees") == "pixels" else ()
    one = {vocabulary.any_sample(), *vocabulary.kinds_of_samples()}.difference(shown) | {name, *pictures}
    credited = {word: value for word, value in rate.items() if word not in one}
    if best := max((rate.get(word, 0.0) for word in one), default=0.0):
        credited[name] = best
    return dict(sorted(credited.items(), key=lambda pair: (-pair[1], pair[0])))


@lru_cache(maxsize=64)  # a diagnosis asks several times
def cure_rates(probabilities: tuple[tuple[str, float], ...], regime: str, phase: str) -> Mapping[str, float]:
    """How likely each remedy is to cure a failure of this regime and phase whose causes have these probabilities, less a part of how
    likely it is to be useless or harmful; the best first. Labelled failures count the more the more alike they are."""
    causes, costs = dict(probabilities), rule_files.table("costs")
    of, net = dict.fromkeys(causes, costs["pseudo"]), dict[tuple[str, str], float]()
    for other, phases in rule_files.table("cures").items():
        kin = "same" if other == regime else "kin" if (other in LEARNING) == (regime in LEARNING) else "other"
        for name, entries in phases.items():
            if (name == "host") != (phase == "host"):
                continue
            alike = costs["alike"][kin] * (1.0 if name == phase else costs["alike"]["phase"])
            for cause, entry in entries.items():
                if cause not in of:
                    continue
                of[cause] += alike * entry["of"]
                for word, count in entry["helped"].items():
                    net[cause, word] = net.get((cause, word), 0.0) + alike * count
                for word, count in entry["harmed"].items():
                    net[cause, word] = net.get((cause, word), 0.0) - alike * costs["wasted"] * count
    found: dict[str, float] = {}
    for (cause, word), sum_ in net.items():
        found[word] = found.get(word, 0.0) + causes[cause] * sum_ / of[cause]
    return MappingProxyType({word: rate for word, rate in sorted(found.items(), key=lambda pair: (-pair[1], pair[0])) if rate > 0})


def cost(offer: Offer) -> float:
    """What trying a remedy costs: another run, and its price in results, speed and effort."""
    table, price = rule_files.table("costs"), offer.remedy.price
    return float(table["run"] + table["results"][price.results] + table["speed"][price.speed] + table["effort"][price.effort])


def is_usual(offer: Offer) -> bool:
    """Whether only the list calls for it."""
    return offer.call is not None and offer.call.cause.rule == USUAL


def listed(offers: Sequence[Offer], job: Job) -> list[Offer]:
    """The entries of the list: those of the usual remedies that pass, by benefit and cost; in an unknown regime two for each, of those that
    help whatever it is."""
    best = list(rates(job).values())
    if len(best) == 1:
        return _best(offers, best[0], job)[:ENTRIES]
    found: list[Offer] = []
    offers = [offer for offer in offers if offer.rule.either or not is_conditional(offer.rule, job)] or offers
    for rate in best:
        found += [offer for offer in _best(offers, rate, job) if not any(_alike(offer.id, other.id) for other in found)][:2]
    return found


def _alike(word: str, other: str) -> bool:
    """Whether two remedies are the same, or of one kind."""
    return word == other or any({word, other} <= set(kind) for kind in rule_files.table("vocabulary")["of_a_kind"])


def tried(job: Job) -> set[str]:
    """The remedies that did not help by the report's own words, where no setting refutes them; with smaller samples of one kind those of
    any kind did not, either."""
    book, kinds = job.book, rule_files.table("vocabulary")["of_a_kind"]
    said = {str(fact.value) for fact in book.all("report.tried")} - refuted(job)
    of_samples = next(kind for kind in kinds if vocabulary.any_sample() in kind)
    if hypotheses.phase(book) == "eval" and book.switch("train.enabled") is not True:  # the only batch is the one that is evaluated
        said = said.union(*(pair for pair in rule_files.table("vocabulary")["by_regime"] if said.intersection(pair)))
    return said | {vocabulary.any_sample()} if said.intersection(of_samples) else said


def refuted(job: Job) -> set[str]:
    """The remedies that the job has by the report's words alone (a title says LoRA), and by its settings has not."""
    said = {str(fact.value) for fact in job.book.all("report.has")}
    facts = [(rule, job.book.fact(rule.turns)) for rule in job.rules if rule.remedy in said and rule.turns is not None]
    return {rule.remedy for rule, fact in facts if fact is not None and fact.origin == "config" and fact.value not in wanted(rule, job)}


def _best(offers: Sequence[Offer], rate: Mapping[str, float], job: Job) -> list[Offer]:
    """Those that pass, by benefit and cost; behind one of each kind the others of that kind. What was tried in vain is the last, and stays
    only if it can be carried further."""
    able = [offer for offer in offers if offer.id in rate and not is_blind_guess(offer, job) and not is_trifle(offer)]
    vain = tried(job)
    left = [offer for offer in able if offer.id not in vain or offer.changes]
    ordered = sorted(left or able, key=lambda offer: (offer.id in vain, -rate[offer.id] / cost(offer)))
    kinds: Sequence[Sequence[str]] = rule_files.table("vocabulary")["of_a_kind"]
    firsts = [next((offer.id for offer in ordered if offer.id in kind), None) for kind in kinds]
    return sorted(ordered, key=lambda offer: any(offer.id in kind and offer.id != first for kind, first in zip(kinds, firsts, strict=True)))


def is_trifle(offer: Offer) -> bool:
    """Whether the ledger knows that it saves next to nothing."""
    return offer.remedy.saves is not None and offer.remedy.saves.high < TRIFLE


def is_blind_guess(offer: Offer, job: Job) -> bool:
    """Whether it helps at another phase than that of the failure, spreads the work over cards that nothing shows, was tried before anybody
    was asked, or answers something that evidence would have to show, and no rule for this regime proposes it all the same."""
    if offer.id in vocabulary.having("over_cards") and not several(job):
        return True
    if offer.id in asked_first(job):
        return True
    phases = vocabulary.phases_of(offer.id) if job.trains or job.regime == "unknown" else None
    if phases is not None and hypotheses.phase(job.book) not in phases:
        return True
    of_regime = any(name == "run.regime" for line in offer.rule.where for name in line.names)
    if is_anybodys_script(job) and not offer.remedy.edits and offer.id not in vocabulary.having("any_program"):
        return True
    return offer.id in vocabulary.having("needs_evidence") and not of_regime


def in_judged_order(offers: list[Offer], job: Job, firm: Collection[str]) -> list[Offer]:
    """The offers, the first of them, where of none is known that the job then fits, by how experts judged what was offered for such a
    cause, and by their places as they are: a place counts as much as a part of the judgements (`place` in rules/costs.yaml). What is new
    hardware or another model stays behind the others, what is `firm` where it is."""
    if not job.judgement.causes or any(offer.fits in ("yes", "likely") for offer in offers):
        return offers
    worth, place = judged(job.judgement.causes[0].rule), rule_files.table("costs")["judged"]["place"]
    first = [offer for offer in offers if not offer.spare and offer.id not in firm][:ENTRIES]
    ordered = iter(sorted(first, key=lambda offer: (is_last_resort(offer), place * first.index(offer) - worth(offer.id))))
    return [next(ordered) if offer in first else offer for offer in offers]


def judged(rule: str) -> Callable[[str], float]:
    """How experts judged a remedy when it was on offer for a cause by this rule: 2 if always as the best, 1 if always as a cure, -1 if it
    never helped. Where there are few judgements it is near one half, and where there are none the order of the rules stands."""
    counts, pseudo = rule_files.table("judged").get(rule, {}), rule_files.table("costs")["judged"]["pseudo"]

    def worth(word: str) -> float:
        of, cured, best, useless = counts.get(word, (0, 0, 0, 0))
        return float((cured + best - useless + pseudo / 2) / (of + pseudo))

    return worth
