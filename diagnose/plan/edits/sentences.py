"""The sentences of the planner: why a remedy helps, why advice is rejected, in both languages with their figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from diagnose.adapters.schema import framework_tables
from diagnose.budget.model.ledger import Host, Ledger
from diagnose.decide.verdict_wording import fill, shown
from diagnose.facts import Fact, Value, declared
from diagnose.phrases import Text, phrase, same
from diagnose.plan.edits.value_spelling import word_for
from diagnose.plan.pricing.context import Job
from diagnose.plan.pricing.saving import Saving, difference
from diagnose.plan.rules.remedy_rules import Rule
from diagnose.units import Size, show


def filled(text: Text, job: Job, **values: object) -> Text:
    """A rule's sentence with its {facts}, and {value}, {current} and the like, as a person writes them."""
    said = Text(fill(text.en, job.book.value, "en"), fill(text.zh, job.book.value, "zh"))
    for name, value in values.items():
        said = Text(said.en.replace(f"{{{name}}}", str(value)), said.zh.replace(f"{{{name}}}", str(value)))
    return said


def titled(rule: Rule, job: Job) -> Text:
    """The title, with the caveats that nobody has ruled out."""
    title = filled(rule.title, job)
    for caveat in rule.caveats:
        if job.true(caveat.all) is not False:
            title = phrase("plan.caveat", title=title, caveat=filled(caveat.reason, job))
    return title


def called(name: str) -> Text:
    """What a fact or knob is called."""
    entry = declared(name)
    return Text(entry.en, entry.zh) if entry else same(name)


def value_of(value: Value) -> Text:
    return Text(shown(value, "en"), shown(value, "zh"))


def between(size: Size) -> Text:
    """A size whose ends differ as both of them."""
    low, high = show(size.low), show(size.high)
    return same(low) if low == high else phrase("plan.between", low=low, high=high)


def witness(fact: Fact) -> Text:
    """Where a fact is from, in a few words."""
    seen = fact.witness
    if fact.origin == "default":
        return phrase("plan.witness_default")
    if fact.origin == "given":
        return phrase("plan.witness_given")
    if seen.key:
        return phrase("plan.witness_key", name=seen.key, source=PurePath(seen.source).name or seen.source)
    if seen.line:
        return phrase("plan.witness_log", line=seen.line)
    return phrase("plan.witness_derived")


def joined(*parts: Text) -> Text:
    return Text("".join(part.en for part in parts), "".join(part.zh for part in parts))


def why_saves(job: Job, saving: Saving, after: Size | None) -> Text:
    """The figures of a remedy that the ledger prices."""
    bench = job.bench
    if after is not None and bench.peak is not None and after.bytes >= bench.peak.bytes and not saving.moment and not saving.supposed:
        return phrase("plan.frees", saves=show(saving.bytes.bytes))
    if saving.supposed:
        return phrase("plan.saves_supposed", saves=show(saving.bytes.bytes), supposed=supposed(saving))
    if saving.moment:
        return phrase("plan.saves_elsewhere", saves=show(saving.bytes.bytes), moment=phrase(f"moment.{saving.moment}"))
    if after is None or bench.peak is None:
        return phrase("plan.saves_only", saves=show(saving.bytes.bytes))
    of = phrase("plan.of", usable=show(bench.usable.bytes)) if bench.usable else same("")
    return phrase("plan.saves", saves=show(saving.bytes.bytes), before=show(bench.peak.bytes), after=show(after.bytes), of=of)


def supposed(saving: Saving) -> Text:
    facts = dict(saving.supposed)
    tokens = f"{facts.get('train.max_seq_len', 0):,}"
    if "model.attention" in facts:
        return phrase("plan.supposed_attention", attention=facts["model.attention"], tokens=tokens)
    return phrase("plan.supposed_length", tokens=tokens)


def why_bounded(job: Job, bound: Size) -> Text:
    """What an allocator remedy can and cannot do here."""
    book, bench = job.book, job.bench
    said = phrase("plan.at_most", saves=show(bound.bytes))
    requested, free, idle = book.size("log.requested"), book.size("log.free"), book.size("log.reserved_unallocated")
    if requested is None or free is None or idle is None:
        return said
    room = free + idle
    said = phrase("plan.places_request", requested=requested, room=show(room.bytes))
    if bench.trust == "full" and bench.peak and bench.usable and bench.peak.bytes > bench.usable.bytes:
        return joined(said, phrase("plan.but_more_follows", peak=show(bench.peak.bytes), usable=show(bench.usable.bytes)))
    if another_follows(job):
        return joined(said, phrase("plan.but_next_block", left=show((room - requested).bytes)))
    return said


def another_follows(job: Job) -> bool:
    """The logits of a loss are followed by blocks of the same size; whether the next one no longer fits."""
    book = job.book
    requested, free, idle = book.size("log.requested"), book.size("log.free"), book.size("log.reserved_unallocated")
    if requested is None or free is None or idle is None or book.word("attribution.group") != "logits":
        return False
    return (free + idle - requested).bytes < requested.bytes


def why_without_figures(job: Job, rule: Rule, frees: Size | None) -> Text:
    """A remedy whose effect the ledger cannot price: what is to be done, or the cause it answers."""
    if frees is not None:
        return phrase("plan.frees", saves=show(frees.bytes))
    if rule.do is not None:
        return filled(rule.do, job)
    call = job.calls.get(rule.remedy)
    return phrase("plan.eases_cause", cause=call.cause.title) if call else phrase("plan.not_priced")


def keys_of(name: str, framework: str | None, most: int = 2) -> Text | None:
    """What a framework calls a knob, newest first, with the framework's name; None where it has no key that may be written."""
    if framework not in framework_tables.names():
        return None
    keys = list(dict.fromkeys(key.key for key in framework_tables.table(framework).of(name) if key.addable))[:most]
    either = phrase("plan.how_or")
    names = Text(either.en.join(keys), either.zh.join(keys))
    return phrase("plan.how_key", keys=names, framework=framework_tables.display_name(framework)) if keys else None


def where_set(rule: Rule, job: Job) -> Text | None:
    """By which key a remedy is set that no edit shows; of nobody's framework as an example the one that most others build on."""
    if rule.turns is None or rule.do is not None:
        return None
    framework = job.book.word("train.framework")
    keys = keys_of(rule.turns, framework or (framework_tables.of_role("general") if job.trains and not job.documents else None), most=1)
    return None if keys is None else phrase("plan.by_key" if framework else "plan.by_key_such_as", keys=keys)


def how_set(rule: Rule, job: Job, changes: Mapping[str, Value]) -> Text | None:
    """The key and the value that turn a knob, where no file was given that an edit could show; None where the framework has no key that
    can say it."""
    value = changes.get(rule.turns or "")
    if value is None or rule.turns is None or rule.do is not None:
        return None
    book = job.book
    named = book.word("rollout.engine") if rule.turns.startswith("rollout.") and not job.documents else book.word("train.framework")
    if named not in framework_tables.names():
        return None
    trainer = framework_tables.table(named)
    in_file = rule.turns.startswith("zero.") and trainer.file_key != ""
    table = framework_tables.table(framework_tables.of_role("engine")) if in_file else trainer
    written = ((key.key, word_for(key, value)) for key in table.of(rule.turns) if key.addable and key.takes == "whole")
    told = next((f"{key}: {word}" for key, word in written if word is not None), None)
    if told is None:
        return None
    if in_file:
        return phrase("plan.in_engine_file", setting=same(told), option=same(trainer.file_key))
    return phrase("plan.in_framework", setting=same(told), framework=framework_tables.display_name(named))


def why_on_host(job: Job, rule: Rule, changes: Mapping[str, Value]) -> Text:
    """What a remedy takes off the host, as far as a ledger says; what it does on the card is not what failed."""
    before, after = job.bench.before, job.bench.after(changes)
    if before is not None and after is not None:
        less = difference(_fullest(before.host), _fullest(after.host))
        if less.bytes > 0:
            return joined(phrase("plan.saves_host", saves=show(less.bytes)), _back_on_card(job, rule, after))
    return why_without_figures(job, rule, None)


def _back_on_card(job: Job, rule: Rule, after: Ledger) -> Text:
    """What each card needs once states come back to it."""
    need = job.bench.need(after)
    if rule.relieves != "host" or need is None or not after.complete:
        return same("")
    of = phrase("plan.of", usable=show(job.bench.usable.bytes)) if job.bench.usable else same("")
    return phrase("plan.card_then", need=show(need.bytes), of=of)


def _fullest(host: Host) -> Size:
    return max((host.total, *(moment.total for moment in host.moments)), key=lambda size: size.bytes)


def no_effect(job: Job, saving: Saving) -> Text:
    """Why a remedy does nothing for this peak, or too little."""
    group, share = job.largest
    what = {"share": f"{share:.0%}", "what": phrase(f"plan.group_{group}")}
    gone = 0 if saving.moment else saving.bytes.bytes
    if gone < 2**20:
        return phrase("plan.no_effect", **what)
    shortage = job.bench.shortage
    if shortage is None or shortage.bytes <= 0:
        return phrase("plan.too_little_free", saves=show(gone), **what)
    return phrase("plan.too_little", saves=show(gone), shortage=show(shortage.bytes), **what)
