"""One rule held against one job: an offer with its price, a rejection with its reason, or nothing to say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from diagnose.facts import Value
from diagnose.phrases import Text, phrase, same
from diagnose.plan.choose.gate import is_conditional, refusal, rejected, too_little_card, too_little_host
from diagnose.plan.choose.relevance import considered, helps, needs_uncounted_cards, promising, splits_unknown, unasked
from diagnose.plan.edits import env_edits, step_rows
from diagnose.plan.edits.editability import (
    adds_no_contradiction,
    broken_by,
    edits_of,
    implied_changes,
)
from diagnose.plan.edits.sentences import (
    done_by,
    fill_facts,
    join_texts,
    key_hint,
    next_request_follows,
    setting_hint,
    title_of,
    value_text,
    why_bounded,
    why_no_effect,
    why_on_host,
    why_saves,
    why_without_figures,
)
from diagnose.plan.patch.patching import commands_edited_alike
from diagnose.plan.pricing import larger_cards, serving_price_words
from diagnose.plan.pricing.candidate_values import ACCUMULATION, CAPACITY, WORLD, candidates, changes_of, with_companions
from diagnose.plan.pricing.context import Job, Offer
from diagnose.plan.pricing.fit import fits as sized
from diagnose.plan.pricing.saving import Saving, beyond, difference
from diagnose.plan.remedies.remedy import Edit, Fits, Price, Rejected, Remedy
from diagnose.plan.remedies.remedy_rules import Rule
from diagnose.units import Size, show


def weigh(rule: Rule, job: Job) -> Offer | Rejected | None:
    """A remedy against a job: an Offer where it would help, Rejected with the reason where people would try it in vain, None where it has
    nothing to do with the job."""
    if rule.tasks and job.book.word("run.task") not in rule.tasks:
        return None
    called = rule.remedy in job.calls
    where = job.true(rule.where)
    if where is False or (not called and (where is None or not considered(rule, job))):
        return None
    if (refused := refusal(rule, job)) is not None:
        return rejected(rule, refused, job)
    aloud = called or rule.popular
    weighed = by_ledger(rule, job) if rule.ledger else by_figures(rule, job)
    if isinstance(weighed, Rejected):
        return weighed if aloud and where is True else None
    if weighed is None or (where is None and (weighed.saving is None or weighed.saving.bytes.bytes <= 0)):
        return None  # whether it applies is not known, and what it would save neither
    if where is None or splits_unknown(weighed, job):  # it cannot be said to fit before it is known to apply
        weighed = replace(weighed, remedy=replace(weighed.remedy, fits="unknown"), presumed=where is None)
    if called or unasked(weighed, job):
        return weighed
    return replace(weighed, spare=True) if helps(weighed) else None


# -- priced by the ledger


def by_ledger(rule: Rule, job: Job) -> Offer | Rejected | None:
    """A knob remedy: the value that fits, what it saves, and whether that is worth a word."""
    bench, by_hand = job.bench, rule.words(job.book) is not None
    changes = changes_of(
        rule,
        bench,
        allowed=lambda changes: (
            (by_hand or rule.effort == "hardware" or edits_of(changes, job) is not None) and adds_no_contradiction(changes, job)
        ),
    )
    if not changes:  # the value in effect is not known, so neither is how far to go
        meant = rule.remedy in job.calls and job.true(rule.where) is True
        return offered(rule, job, {}, None, None, "unknown", why_without_figures(job, rule, None)) if meant else None
    if (why := why_without_price(rule, job, changes)) is not None:
        return offered(rule, job, changes, None, None, "unknown", why)
    saving = bench.saving(changes) if bench.trust != "none" and not is_of_another_job(job) else None
    if bench.trust == "least" and saving is not None and (saving.moment or saving.bytes.bytes <= bench.noticeable):
        saving = None  # what it saves may be among the terms that are missing
    if saving is not None and belied(rule, job, saving):
        saving = None
    host = host_of(rule, job, changes)
    if (refused := too_little_host(job, host)) is not None:
        return Rejected(rule.remedy, rule.id, refused)
    if saving is None:
        if rule.remedy not in job.calls and not promising(changes, job):
            return None
        return offered(rule, job, changes, None, None, "unknown", why_without_figures(job, rule, None), host)
    after = bench.after(changes)
    if rule.remedy in job.calls and rule.alone is None and bench.untouched(changes):  # the ledger does not know this knob
        return offered(rule, job, changes, None, None, "unknown", why_without_figures(job, rule, None), host)
    peak = bench.need(after) if bench.trust in ("full", "short") else None
    if bench.trust in ("full", "short") and (verdict := pointless(rule, job, saving)) is not None:
        if rule.alone is None:
            return None if failed_with_room(job) else Rejected(rule.remedy, rule.id, verdict)
        why = done_by(rule, job) or fill_facts(rule.alone, job)
        return offered(rule, job, changes, Saving(Size.exactly(0)), peak, bench.fits(changes), why, host)
    if rule.turns == CAPACITY:
        return on_larger_card(rule, job, changes)
    why = join_texts(why_saves(job, saving, peak), by_length(job, changes), milder(rule, job, changes))
    return offered(rule, job, changes, saving, peak, bench.fits(changes), why, host)


def failed_with_room(job: Job) -> bool:
    """Whether it failed though the ledger fits: what filled the memory is not in it, so that it proves nothing useless."""
    return job.book.word("log.family") is not None and job.bench.fits({}) == "yes"


def why_without_price(rule: Rule, job: Job, changes: dict[str, Value]) -> Text | None:
    """What is said of a remedy that the ledger could price and must not: of the host, or of cards that may not be there."""
    if job.on_host and rule.relieves != "gpu":
        return why_on_host(job, rule, changes)
    return why_without_figures(job, rule, None) if needs_uncounted_cards(rule, job) else None


def is_of_another_job(job: Job) -> bool:
    """Whether the ledger needs more than was allocated, and has not even the tensor that failed: its savings then say nothing here."""
    return job.bench.trust == "over" and job.book.switch("attribution.exact") is not True


def belied(rule: Rule, job: Job, saving: Saving) -> bool:
    """Whether the remedy answers a cause that presumes more than the ledger counts: a saving away from the peak, and less than the cause
    accounts for, is then of another job."""
    call = job.calls.get(rule.remedy)
    held = call.cause.accounts_for if call is not None and call.cause.outcome == "likely" else None
    return held is not None and bool(saving.moment) and saving.bytes.high < held.low


def on_larger_card(rule: Rule, job: Job, changes: dict[str, Value], *, beside: bool = False) -> Offer | Rejected:
    """The smallest class of card that holds the job; where none that is sold does, that is the reason against it, unless other steps
    stand `beside` it."""
    verdict, said = job.bench.fits(changes), larger_cards.told(changes, job)
    if said is None or verdict == "unknown":
        return offered(rule, job, changes, None, None, "unknown", why_without_figures(job, rule, None))
    if verdict in ("no", "unlikely") and not beside:
        return Rejected(rule.remedy, rule.id, said)
    peak = job.bench.need(job.bench.after(changes)) if job.bench.trust in ("full", "short") else None
    offer = offered(rule, job, changes, job.bench.saving(changes), peak, verdict, said)
    return replace(offer, remedy=replace(offer.remedy, title=larger_cards.titled(offer.remedy.title, changes), saves=None))


def by_length(job: Job, changes: Mapping[str, Value]) -> Text:
    """What the changes save at several row lengths, where the ledger explains too little to say which was in effect."""
    said: list[Text] = []
    for tokens, need, saved in job.bench.by_length(changes):
        said.append(phrase("plan.next_length" if said else "plan.by_length"))
        said.append(phrase("plan.at_length", tokens=f"{tokens:,}", saves=show(saved.bytes), need=show(need.bytes)))
    return join_texts(*said)


def milder(rule: Rule, job: Job, changes: Mapping[str, Value]) -> Text:
    """Why no milder value was taken: what the next one up would need."""
    bench = job.bench
    if rule.turns is None or rule.to.aim != "largest" or bench.trust != "full" or bench.fits(changes) != "yes":
        return same("")
    tried = candidates(rule.turns, rule.to, bench)
    up = tried[tried.index(changes[rule.turns]) - 1] if changes.get(rule.turns) in tried[1:] else None
    if up is None or bench.fits(next_up := with_companions(rule, bench, up)) == "yes":
        return same("")
    need = bench.need(bench.after(next_up))
    return phrase("plan.milder", value=value_text(up), need=show(need.bytes)) if need is not None else same("")


def pointless(rule: Rule, job: Job, saving: Saving) -> Text | None:
    """Why the saving is not worth it: the peak grows, or hardly anything changes. None where it is worth it."""
    bench = job.bench
    if saving.bytes.bytes < -job.bench.noticeable and bench.peak is not None:
        return phrase("plan.makes_worse", before=show(bench.peak.bytes), after=show((bench.peak - saving.bytes).bytes))
    if not saving.moment:
        return why_no_effect(job, saving) if saving.bytes.bytes <= job.bench.noticeable else None
    costs_nothing = rule.results == "keep" and rule.speed in ("faster", "same")
    asked = bench.book.size("log.requested")  # without a card to measure by, what it saves is held against what was asked for
    least = bench.usable.bytes // 100 if bench.usable else min(bench.noticeable, asked.bytes // 10 if asked else bench.noticeable)
    enough = saving.bytes.bytes > least
    wanted = (costs_nothing and rule.popular) or job.calls.get(rule.remedy) is not None
    return None if enough and wanted else why_no_effect(job, saving)


def host_of(rule: Rule, job: Job, changes: Mapping[str, Value]) -> Size | None:
    """The host memory that it takes on the node: the difference of two ledgers' host sides."""
    before, after = job.bench.before, job.bench.after(changes)
    if not rule.takes_host or before is None or after is None:
        return None
    return difference(after.host.total, before.host.total)


# -- bounded by the message, or by a named fact


def by_figures(rule: Rule, job: Job) -> Offer | Rejected | None:
    """A remedy that the ledger does not price: what the message shows bounds it, or nothing is known of its bytes."""
    changes = (changes_of(rule, job.bench, allowed=lambda tried: adds_no_contradiction(tried, job)) or {}) if rule.turns else {}
    if rule.turns and not changes and (others := bound_to(rule, job)) is not None:
        return offered(rule, job, {}, None, None, "unknown", others)
    if rule.relieves == "host" and changes:
        whole = changes | implied_changes(edits_of(changes, job) or (), changes, job.documents, job.book)
        if (reason := too_little_card(job, whole)) is not None:
            return Rejected(rule.remedy, rule.id, reason, outright=True)
        if job.on_host and rule.do is None:
            return back_on_card(rule, job, changes, whole)
    size, host = (job.book.size(name) if name else None for name in (rule.at, rule.host_at))
    if (refused := too_little_host(job, host)) is not None:
        return Rejected(rule.remedy, rule.id, refused)
    if size is None:
        return offered(rule, job, changes, None, None, "unknown", why_without_figures(job, rule, None), host)
    drawn = Size(0 if rule.bounded else size.bytes, size.bytes, size.bytes)  # a figure of the message, as the bar draws it
    if rule.bounded:
        return offered(rule, job, changes, Saving(drawn), None, places(job), why_bounded(job, drawn))
    gone = drawn if rule.at and rule.at.startswith("log.") else size
    return offered(rule, job, changes, Saving(gone), None, freed(job, size), why_without_figures(job, rule, gone), host)


def bound_to(rule: Rule, job: Job) -> Text | None:
    """Which comparison of settings every value of the remedy would break, so that other settings have to be lowered with it."""
    values = candidates(rule.turns, rule.to, job.bench) if rule.turns else []
    broken = broken_by({rule.turns: values[0]}, job) if rule.turns and values else []
    return phrase("plan.bound_to", rule=broken[0]) if broken else None


def back_on_card(rule: Rule, job: Job, changes: dict[str, Value], whole: Mapping[str, Value]) -> Offer:
    """What leaves the host for the card, with what both then hold; that the card has room need not be doubted where it is known.
    `whole`: with what the edits set besides (a file that one word names)."""
    offer = offered(rule, job, changes, None, None, still_too_much(job, whole), why_on_host(job, rule, whole))
    verdict = job.bench.fits(whole)
    if verdict in ("yes", "likely"):
        return replace(offer, remedy=replace(offer.remedy, title=fill_facts(rule.title, job)))
    moved = any(knob.startswith(("zero.offload", "fsdp.offload")) for knob in changes)
    return replace(offer, blind=moved and (job.bench.usable is None or verdict == "unlikely"))


def still_too_much(job: Job, changes: Mapping[str, Value]) -> Fits:
    """Whether what then still lies on the host is known to be too much; what else lies there nobody knows, so that nothing surely fits."""
    after, ram = job.bench.after(changes), job.book.size("log.container_limit") or job.book.size("host.ram")
    return "no" if after is not None and ram is not None and after.host.total.low > ram.high else "unknown"


def places(job: Job) -> Fits:
    """Whether a tidier allocator is enough: only where the whole peak fits, not just this one request."""
    bench = job.bench
    if bench.trust == "full":
        return bench.fits({})
    return "unlikely" if next_request_follows(job) else "unknown"


def freed(job: Job, size: Size) -> Fits:
    """Whether it is enough that the card gets so much back. The request that failed is only the next one: without an estimate of the
    peak nobody knows what would have followed."""
    bench = job.bench
    return sized(bench.peak - size, bench.usable) if bench.trust == "full" and bench.peak is not None else "unknown"


def in_commands(edits: tuple[Edit, ...], job: Job) -> Text:
    """Says so where several commands of a script hold the same values."""
    commands = commands_edited_alike(job.documents, edits)
    return phrase("plan.in_commands", count=str(commands)) if commands > 1 else same("")


def offered(
    rule: Rule,
    job: Job,
    changes: dict[str, Value],
    saving: Saving | None,
    peak: Size | None,
    fits: Fits,
    why: Text,
    host: Size | None = None,
    command: Text | None = None,
) -> Offer:
    """The offer with its edits, environment and price. A batch that cannot be kept is said, and costs."""
    shrinks = step_rows.lost_rows(changes, job)
    if shrinks is not None:
        changes = {knob: value for knob, value in changes.items() if knob != ACCUMULATION}
    edits = edits_of(changes, job) or ()
    env = () if env_edits.edits(changes, job.book, job.documents) else env_edits.export_lines(changes, job.book, job.documents)
    command = command or (fill_facts(rule.command, job) if rule.command else None)
    if not edits and not env and command is None:
        command = setting_hint(rule, job, changes) or (key_hint(rule, job) if saving is None else None)
    why = join_texts(why, shrinks or same(""), in_commands(edits, job))
    title = larger_cards.titled(title_of(rule, job), changes) if rule.turns == WORLD else title_of(rule, job)
    remedy = Remedy(
        id=rule.remedy,
        rule=rule.id,
        title=title if not is_conditional(rule, job) else rule.either or phrase("plan.if_train", what=title),
        why=why,
        saves=saving.bytes if saving else None,
        peak=peak,
        fits=fits,
        price=Price(
            "may_change" if shrinks and rule.results == "keep" else rule.results,
            rule.speed,
            rule.effort,
            host if host and host.bytes > 0 else None,
            serving_price_words.price(rule, job),
            "card" if rule.host_at else "node",
        ),
        edits=edits,
        env=env,
        command=command,
        references=rule.references,
        url=rule.url,
        knobs=tuple(changes.items()),
        beyond=saving is not None and beyond(saving.bytes, job.book),
    )
    call = job.calls.get(rule.remedy)
    aside = call is not None and job.aside(call.cause.cause, changes, saving)
    return Offer(remedy, rule, changes, saving, call, aside=aside)
