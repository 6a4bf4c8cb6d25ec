"""The gate: every remedy passes it before it is offered, wherever it comes from. One function for each reason to refuse one:

  of_another_program  programs of this regime, framework or entry point cannot have it, or have no key for it
  contraindicated     the figures of log or ledger refute it, or what is known of the job does (`not_when` of its rule)
  ruled_out           it leaves what the leading cause speaks of as it is
  in_effect           it is done already
  too_unsure          it might break the run, and nobody knows whether it would
  too_little_host, too_little_card   what it takes there is not there
  closes_nothing      what it saves is less than what is missing, and no set of steps in which it stands closes the rest
  opposites           it undoes what another remedy of the same answer does
  once                it is the act of an earlier remedy in other words

Edits that break a constraint between settings are refused where values are chosen (plan/edits/editability.adds_no_contradiction).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from diagnose import families, rule_files, vocabulary
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.translate.translation import typed_default
from diagnose.catalogue import sizes_sold
from diagnose.decide.regime import LEARNING
from diagnose.facts import Fact, Value
from diagnose.phrases import Text, phrase, same
from diagnose.plan.edits.editability import has_unwritable_key, is_for_another_trainer, is_generic, is_settable, why_ineffective
from diagnose.plan.edits.sentences import engine_of, fact_name, fill_facts, source_text, value_text
from diagnose.plan.pricing.candidate_values import goes_the_way, value_for
from diagnose.plan.pricing.context import Job, Offer
from diagnose.plan.remedies.remedy import Edit, Rejected
from diagnose.plan.remedies.remedy_rules import Rule, Unless
from diagnose.records import NamedTuple
from diagnose.units import Size, show


class Refusal(NamedTuple):
    """Why a remedy is not offered; without a reason it is not worth a word. `idle`: there is only nothing to change, or nobody
    knows whether it may be changed. `little`: it may help,
    by little."""

    reason: Text | None = None
    idle: bool = False
    little: bool = False


def refusal(rule: Rule, job: Job) -> Refusal | None:
    """The first reason against a remedy that is known before its price; None where it may be offered."""
    other = of_another_program(rule, job)
    if other is not None:
        return other
    if job.book.switch("log.request_overflow") is True and rule.remedy not in vocabulary.having("mends"):
        return Refusal()  # a size that was computed wrongly finds room nowhere
    against = contraindicated(rule, job)
    reason = ruled_out(rule, job) or without_effect(rule, job) or in_effect(rule, job)
    if against is not None and not (against.gains_little and reason is not None):
        return Refusal(fill_facts(against.reason, job), idle=against.idle, little=against.gains_little)
    if reason is not None:
        return Refusal(reason)
    if vocabulary.any_sample() in job.calls and job.of_unknown_kind(rule.remedy):
        return Refusal()  # that one says it for samples of any kind
    if (reason := too_unsure(rule, job)) is not None:
        return Refusal(reason if rule.remedy in job.calls and job.true(rule.where) is True else None, idle=True)
    return without_key(rule, job)


def of_another_program(rule: Rule, job: Job) -> Refusal | None:
    """Programs of another regime have it, another trainer, or those that run a network. Remedies of training need a sign that something is
    trained, or that nobody knows the regime and something calls for them; a rule that asks for the regime decides itself."""
    if is_for_another_trainer(rule, job):
        return Refusal()
    if job.book.word("run.takes") == "none" and rule.remedy not in vocabulary.having("without_network"):
        return Refusal()
    if (rule.remedy in vocabulary.having("of_torch") and runs_without_torch(job)) or rule.remedy in _lacked(job):
        return Refusal()
    regimes = vocabulary.regimes_of(rule.remedy)
    if regimes is None or (job.regime in regimes and (job.trains or not regimes <= LEARNING)):
        return None
    asks = any(name in ("run.regime", "train.enabled") for line in rule.where for name in line.names)
    if asks or (job.regime == "unknown" and rule.remedy in job.calls):
        return None
    tried = job.book.switch("train.enabled") is False and rule.popular and not job.on_host  # the report says why it is not offered
    return Refusal(phrase("plan.does_not_train") if tried else None, idle=True)


def runs_without_torch(job: Job) -> bool:
    """Whether another framework's allocator ran out, or nothing shows that torch's did and the program runs on another one."""
    word = job.book.word("log.family")
    family = families.of(word) if word is not None else None
    if family is not None and (family.shared or (family.allocator and job.book.switch("log.proved") is True)):
        return family.shared
    return job.book.word("run.program") in vocabulary.having("without_torch")


def _lacked(job: Job) -> Sequence[str]:
    """What programs of the framework whose allocator ran out cannot have."""
    return families.of(job.book.word("log.family")).lacks


def is_conditional(rule: Rule, job: Job) -> bool:
    """Whether it only helps if it turns out that something is trained."""
    return job.regime == "unknown" and (vocabulary.regimes_of(rule.remedy) or frozenset("-")) <= LEARNING


def without_key(rule: Rule, job: Job) -> Refusal | None:
    """The framework has no key for it, or one that has no effect beside the other settings. A key in a file that was not given, or a file
    of another kind without it, says nothing."""
    by_hand = rule.words(job.book) is not None or rule.effort == "hardware"  # no key says how many cards a job is given
    if rule.turns is None or by_hand or is_settable(rule, job):
        return None
    framework = job.book.word("train.framework")
    if has_unwritable_key(rule.turns, job) or (engine_of(rule.turns, job.book) is not None and not job.documents):
        return Refusal()
    if framework is not None and job.true(rule.where) is True:
        said = why_ineffective(rule, job)
        return Refusal(said or phrase("plan.no_key", framework=framework_tables.display_name(framework)), idle=said is None)
    return Refusal() if framework is None and not (rule.remedy in job.calls and is_generic(job)) else None


def contraindicated(rule: Rule, job: Job) -> Unless | None:
    """The first contraindication that holds for sure; None where none does."""
    return next((unless for unless in rule.not_when if job.true(unless.all) is True), None)


def ruled_out(rule: Rule, job: Job) -> Text | None:
    """Says so where the remedy leaves what the leading cause speaks of as it is (`rules_out` of its rule)."""
    cause = job.judgement.leading
    if cause is None or not cause.rules_out or rule.remedy not in vocabulary.having(cause.rules_out):
        return None
    return phrase("plan.ruled_out", title=cause.title)


def without_effect(rule: Rule, job: Job) -> Text | None:
    """Says so where the report saw that what it takes stays the same with another setting."""
    fact = next((fact for fact in job.book.all("report.no_effect") if fact.value == rule.remedy), None)
    return None if fact is None else phrase("plan.memory_unchanged", witness=source_text(fact))


def too_unsure(rule: Rule, job: Job) -> Text | None:
    """The reason of the first contraindication that counts even where nobody knows whether it holds."""
    for unless in rule.not_when:
        if unless.even_unknown and job.true(unless.all) is None:
            return fill_facts(unless.reason, job)
    return None


def in_effect(rule: Rule, job: Job) -> Text | None:
    """Says so, with value and witness, where the knob already has what the rule would set, or can go no further."""
    fact = job.book.fact(rule.turns) if rule.turns else None
    if rule.turns is None or fact is None or fact.value is None:
        return on_by_default(rule, job)
    if fact.value in wanted(rule, job) or is_beyond(rule, fact.value, job):
        return phrase("plan.in_effect", **told(fact))
    floor = rule.to.least or (0 if isinstance(fact.value, float) else 1)  # a share has no least step
    if rule.to.goes == "down" and isinstance(fact.value, (int, float)) and not isinstance(fact.value, bool) and fact.value <= floor:
        return (
            phrase("plan.at_floor", least=same(f"{int(floor):,}"), **told(fact)) if floor > 1 else phrase("plan.at_minimum", **told(fact))
        )
    if rule.to.goes == "down" and any(tried.value == rule.remedy for tried in job.book.all("report.tried")):
        least = (other for other in job.book.all(rule.turns) if isinstance(other.value, int) and other.value <= floor)
        return next((phrase("plan.tried_in_vain", **told(other)) for other in least), None)
    return None


def on_by_default(rule: Rule, job: Job) -> Text | None:
    """Says so where nobody shows the setting, and the trainer has it on unless it is switched off."""
    framework = job.book.word("train.framework")
    if rule.turns is None or rule.to.values[:1] != ("enabled",) or framework not in framework_tables.names() or rule.turns in job.book:
        return None
    defaults = [typed_default(key) for key in framework_tables.table(framework).of(rule.turns) if key.default is not None]
    if not defaults or not set(defaults) <= set(wanted(rule, job)):
        return None
    return phrase("plan.on_by_default", knob=fact_name(rule.turns), framework=framework_tables.display_name(framework))


def is_beyond(rule: Rule, now: Value, job: Job) -> bool:
    """Whether the current value lies past every value that the rule would set; a share of the current value always leaves it one."""
    if rule.turns is None or not rule.to.goes or any(text.endswith("%") for text in rule.to.values):
        return False
    values = [value for text in rule.to.values if (value := value_for(rule.turns, text, job.book)) is not None]
    return bool(values) and not any(goes_the_way(value, now, rule.to) for value in values)


def wanted(rule: Rule, job: Job) -> list[Value]:
    """The values that count as in effect: those the rule would set, and those at least as good."""
    if rule.turns is None:
        return []
    fixed = [text for text in rule.to.values if not text.endswith("%")] if rule.to.aim == "list" else []
    return [value_for(rule.turns, text, job.book) for text in (*fixed, *rule.already)]


def told(fact: Fact) -> dict[str, Text]:
    return {"knob": fact_name(fact.name), "value": value_text(fact.value), "witness": source_text(fact)}


def too_little_host(job: Job, host: Size | None) -> Text | None:
    """Says so where the node is known to have less memory than the remedy would take."""
    ram = job.book.size("log.container_limit") or job.book.size("host.ram")
    if host is None or ram is None or host.low <= ram.high:
        return None
    return phrase("plan.host_too_small", host=show(host.bytes), ram=str(ram))


def too_little_card(job: Job, changes: Mapping[str, Value]) -> Text | None:
    """Says so where what comes back from the host would not fit on the card; where nobody says which card it is, on none that is sold."""
    bench = job.bench
    if bench.fits({}) == "no":
        return None
    after = bench.after(changes)
    peak = bench.need(after)
    if peak is None or after is None or not after.complete:
        return None
    if bench.usable is None:
        largest = sizes_sold()[-1][1]
        return phrase("plan.no_card_holds", peak=show(peak.bytes)) if peak.low > largest.high else None
    return phrase("plan.card_too_small", peak=show(peak.bytes), usable=show(bench.usable.bytes)) if bench.fits(changes) == "no" else None


def closes_nothing(offer: Offer, job: Job) -> Text | None:
    """Says so where all that it can save is less than what is missing, as far as the message tells. Of what the ledger prices the answer
    says itself that it is not enough alone: it may be a step of another set."""
    shortage = job.book.size("log.shortage")
    if offer.saving is None or offer.by_ledger or shortage is None or offer.saving.bytes.high >= shortage.low:
        return None
    return phrase("plan.closes_nothing", saves=show(max(0, offer.saving.bytes.high)), missing=show(shortage.low))


def opposites(offers: Sequence[Offer]) -> Iterator[Offer]:
    """The offers without those that undo what an earlier one does."""
    taken: set[str] = set()
    pairs: Sequence[Sequence[str]] = rule_files.table("vocabulary")["opposites"]
    for offer in offers:
        if not any(offer.id in pair and taken.intersection(pair) - {offer.id} for pair in pairs):
            taken.add(offer.id)
            yield offer


def once(offers: Sequence[Offer]) -> Iterator[Offer]:
    """The offers without those whose act an earlier one names in other words, or whose edits are those of an earlier one."""
    said: set[str] = set()
    made: set[frozenset[Edit]] = set()
    acts: Sequence[Sequence[str]] = rule_files.table("vocabulary")["acts"]
    for offer in offers:
        edits = frozenset(offer.remedy.edits)
        if edits not in made and not any(offer.rule.id in act and said.intersection(act) for act in acts):
            said.add(offer.rule.id)
            made.update([edits] if edits else [])
            yield offer


def rejected(rule: Rule, refusal: Refusal, job: Job) -> Rejected | None:
    """The refusal as it is reported: only of what a cause calls for or people try."""
    serves = job.regime == "serve"  # nobody tries at a server what only training has
    tried = rule.popular and (not serves or (rule.turns or "").startswith(("rollout.", "model.")))
    aloud = refusal.reason is not None and (rule.remedy in job.calls or tried or refusal.little)
    return (
        Rejected(rule.remedy, rule.id, refusal.reason, refusal.idle, little=refusal.little)
        if refusal.reason is not None and aloud
        else None
    )
