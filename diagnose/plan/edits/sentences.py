"""Sentences of the planner in both languages: why a remedy helps, why one is rejected, how it is set."""

from __future__ import annotations

from collections.abc import Mapping

from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.table_types import Key
from diagnose.budget.model.ledger import Host, Ledger
from diagnose.decide.verdict_wording import fill, shown
from diagnose.facts import Fact, FactBook, Value, declared, file_of
from diagnose.phrases import Text, phrase, same
from diagnose.plan.edits import key_releases
from diagnose.plan.edits.value_spelling import word_for
from diagnose.plan.pricing.context import USUAL, Job
from diagnose.plan.pricing.saving import Saving, difference
from diagnose.plan.remedies.remedy_rules import OTHER, Rule
from diagnose.units import Size, show


def fill_facts(text: Text, job: Job, **values: object) -> Text:
    """A rule's sentence with the values of its {facts} and of the given placeholders ({value}, {current})."""
    result = Text(fill(text.en, job.book.value, "en"), fill(text.zh, job.book.value, "zh"))
    for name, value in values.items():
        result = Text(result.en.replace(f"{{{name}}}", str(value)), result.zh.replace(f"{{{name}}}", str(value)))
    return result


def title_of(rule: Rule, job: Job) -> Text:
    """The rule's title with its caveats, unless a caveat is known not to apply."""
    task = job.book.word("run.task")
    title = fill_facts(rule.tasks[task][0] if task is not None and task in rule.tasks else rule.title, job)
    for caveat in rule.caveats:
        if job.true(caveat.all) is not False:
            title = phrase("plan.caveat", title=title, caveat=fill_facts(caveat.reason, job))
    return title


def fact_name(name: str) -> Text:
    """The display name of a fact or knob."""
    entry = declared(name)
    return Text(entry.en, entry.zh) if entry else same(name)


def asked(name: str) -> Text:
    """The question for a fact or knob: its own, else one of its kind about its name."""
    entry = declared(name)
    if entry is not None and entry.ask:
        return Text(entry.ask["en"], entry.ask["zh"])
    kind = entry.kind if entry is not None and entry.kind in ("version", "switch") else "value"
    return phrase(f"plan.ask_of_{kind}", name=fact_name(name))


def value_text(value: Value) -> Text:
    """The value of a fact or knob as people write it."""
    return Text(shown(value, "en"), shown(value, "zh"))


def range_text(size: Size) -> Text:
    """A size as its range, or as one figure if both ends print alike."""
    low, high = show(size.low), show(size.high)
    return same(low) if low == high else phrase("plan.between", low=low, high=high)


def source_text(fact: Fact) -> Text:
    """Where a fact comes from, in a few words."""
    witness = fact.witness
    if fact.origin == "default":
        return phrase("plan.witness_by_name", name=witness.key) if witness.key else phrase("plan.witness_default")
    if fact.origin == "given":
        return phrase("plan.witness_given")
    if witness.key:
        named = "plan.witness_guessed" if fact.origin == "guessed" else "plan.witness_key"
        return phrase(named, name=witness.key, source=file_of(witness.source))
    if witness.line:
        return phrase("plan.witness_log", line=witness.line)
    return phrase("plan.witness_derived")


def join_texts(*parts: Text) -> Text:
    """The texts one after another, without a separator."""
    return Text("".join(part.en for part in parts), "".join(part.zh for part in parts))


def why_saves(job: Job, saving: Saving, after: Size | None) -> Text:
    """The figures of a remedy that the ledger prices."""
    bench = job.bench
    if after is not None and bench.peak is not None and after.bytes >= bench.peak.bytes and not saving.moment and not saving.supposed:
        return phrase("plan.frees", saves=show(saving.bytes.bytes))
    if saving.supposed:
        return phrase("plan.saves_supposed", saves=show(saving.bytes.bytes), supposed=supposition(saving))
    if saving.moment:
        return phrase("plan.saves_elsewhere", saves=show(saving.bytes.bytes), moment=phrase(f"moment.{saving.moment}"))
    if after is None or bench.peak is None:
        return phrase("plan.saves_only", saves=show(saving.bytes.bytes))
    capacity = phrase("plan.of", usable=show(bench.usable.bytes)) if bench.usable else same("")
    return phrase("plan.saves", saves=show(saving.bytes.bytes), before=show(bench.peak.bytes), after=show(after.bytes), of=capacity)


def supposition(saving: Saving) -> Text:
    """The attention and row length that a saving supposes."""
    facts = dict(saving.supposed)
    tokens = f"{facts.get('train.max_seq_len', 0):,}"
    if "model.attention" in facts:
        return phrase("plan.supposed_attention", attention=facts["model.attention"], tokens=tokens)
    return phrase("plan.supposed_length", tokens=tokens)


def why_bounded(job: Job, bound: Size) -> Text:
    """What an allocator remedy, which saves at most `bound`, can and cannot do here."""
    book, bench = job.book, job.bench
    text = phrase("plan.at_most", saves=show(bound.bytes))
    requested, free, idle = book.size("log.requested"), book.size("log.free"), book.size("log.reserved_unallocated")
    if requested is None or free is None or idle is None:
        return text
    room = free + idle
    text = phrase("plan.places_request", requested=requested, room=show(room.bytes))
    if bench.trust == "full" and bench.peak and bench.usable and bench.peak.bytes > bench.usable.bytes:
        return join_texts(text, phrase("plan.but_more_follows", peak=show(bench.peak.bytes), usable=show(bench.usable.bytes)))
    if next_request_follows(job):
        return join_texts(text, phrase("plan.but_next_block", left=show((room - requested).bytes)))
    return text


def next_request_follows(job: Job) -> bool:
    """Whether the request is for logits, which a loss allocates several times, and the next block of that size would not fit."""
    book = job.book
    requested, free, idle = book.size("log.requested"), book.size("log.free"), book.size("log.reserved_unallocated")
    if requested is None or free is None or idle is None or book.word("attribution.group") != "logits":
        return False
    return (free + idle - requested).bytes < requested.bytes


def why_without_figures(job: Job, rule: Rule, frees: Size | None) -> Text:
    """The text of a remedy that the ledger cannot price: what it frees, what to do, or the cause that it eases."""
    if frees is not None:
        return phrase("plan.frees", saves=show(frees.bytes))
    call = job.calls.get(rule.remedy)
    if (do := done_by(rule, job)) is not None:
        own = call.cause.put_right if call is not None and call.listed == 0 else None  # the line that its first remedy mends
        return own or do
    if call is None:
        return phrase("plan.not_priced")
    if call.cause.rule == USUAL:
        return phrase("plan.usual_why")
    return phrase("plan.eases_cause", cause=call.cause.title)


def done_by(rule: Rule, job: Job) -> Text | None:
    """What to do where no key is turned, in the words of the program that failed where the rule has them; None where a key is turned."""
    text, program = rule.words(job.book), rule.named(job.book)
    if text is None:
        return None
    text = fill_facts(text, job)
    return text if program is None else key_releases.in_words(text, program, job.documents, job.book)


def engine_of(knob: str, book: FactBook) -> str | None:
    """The engine whose table says how this knob of engines is spelled: the program that serves, or what it runs inside."""
    if not knob.startswith("rollout."):
        return None
    words = (book.word("run.program"), book.word("rollout.engine"))
    return next((word for word in words if word in framework_tables.engines()), None)


def keys_text(name: str, framework: str | None, most: int = 2) -> Text | None:
    """The framework's keys for a knob, newest first, and its name; None where it has no key that may be written."""
    if framework not in framework_tables.names():
        return None
    keys = list(dict.fromkeys(key.key for key in framework_tables.table(framework).of(name) if key.addable))[:most]
    either = phrase("plan.how_or")
    names = Text(either.en.join(keys), either.zh.join(keys))
    return phrase("plan.how_key", keys=names, framework=framework_tables.display_name(framework)) if keys else None


def _is_told_otherwise(rule: Rule, job: Job, framework: str | None) -> bool:
    """Whether the rule's words are shown and no key: those that it has for this program or task, or, of a framework that nobody knows, the
    general ones. A key of the framework that is known says more than those."""
    words = rule.words(job.book)
    return words is not None and (framework is None or words not in (rule.do, rule.programs.get(OTHER)))


def key_hint(rule: Rule, job: Job) -> Text | None:
    """The key that sets a remedy for which no edit is shown; for an unknown framework that of the most general one as an example,
    where something shows that it runs."""
    framework, general = job.book.word("train.framework"), framework_tables.of_role("general")
    if rule.turns is None or _is_told_otherwise(rule, job, framework):
        return None
    runs = f"version.{general}" in job.book or f"{general}/" in (job.book.word("log.frame") or "")
    named = framework or (general if runs and job.trains and not job.documents else "")
    if named not in framework_tables.names() or not (keys := key_releases.offered(rule.turns, named, job.book, job.documents)):
        return None
    since = key_releases.of_setting(keys[0], named, job.book)
    plain = phrase("plan.how_key", keys=same(keys[0].key), framework=framework_tables.display_name(named))
    text = plain if since is None else key_releases.said(same(keys[0].key), since)
    return text if framework else phrase("plan.key_such_as", keys=text)


def setting_hint(rule: Rule, job: Job, changes: Mapping[str, Value]) -> Text | None:
    """The key and value that set a remedy for which no file was given; None where the framework has no key that can express it."""
    value = changes.get(rule.turns or "")
    if value is None or rule.turns is None:
        return None
    book = job.book
    framework = (None if job.documents else engine_of(rule.turns, book)) or book.word("train.framework")
    if framework not in framework_tables.names() or _is_told_otherwise(rule, job, framework):
        return None
    trainer = framework_tables.table(framework)
    in_file = rule.turns.startswith("zero.") and trainer.file_key != ""
    table = framework_tables.table(framework_tables.of_role("engine")) if in_file else trainer
    spellings = ((key, word_for(key, value)) for key in key_releases.offered(rule.turns, table.name, book) if _is_plain(key))
    key, word = next(((key, word) for key, word in spellings if word is not None), (None, ""))
    if key is None:
        return None
    options = trainer.serves and job.regime == "serve" and bool(trainer.detect.get("commands"))  # a server is started by a command
    setting = same(f"--{key.key.replace('_', '-')} {word}" if options and "." not in key.key else f"{key.key}: {word}")
    since = key_releases.of_setting(key, table.name, book)
    if in_file:
        return phrase("plan.in_engine_file", setting=key_releases.said(setting, since), option=same(trainer.file_key))
    place = key_releases.text(since) if since is not None else framework_tables.display_name(framework)
    return phrase("plan.in_framework", setting=setting, framework=place)


def _is_plain(key: Key) -> bool:
    """Whether a key says the knob's value itself, whatever else is set."""
    return key.takes == "whole" and not key.times and not key.over


def why_on_host(job: Job, rule: Rule, changes: Mapping[str, Value]) -> Text:
    """What a remedy saves in host memory, where that ran out; its effect on the card only if states come back to it."""
    before, after = job.bench.before, job.bench.after(changes)
    if before is not None and after is not None:
        saving = difference(_host_peak(before.host), _host_peak(after.host))
        if saving.bytes > 0:
            return join_texts(phrase("plan.saves_host", saves=show(saving.bytes)), _need_on_card(job, rule, after))
    return why_without_figures(job, rule, None)


def _need_on_card(job: Job, rule: Rule, after: Ledger) -> Text:
    """What each card needs once offloaded states come back to it."""
    need = job.bench.need(after)
    if rule.relieves != "host" or need is None or not after.complete:
        return same("")
    capacity = phrase("plan.of", usable=show(job.bench.usable.bytes)) if job.bench.usable else same("")
    return phrase("plan.card_then", need=show(need.bytes), of=capacity)


def _host_peak(host: Host) -> Size:
    return max((host.total, *(moment.total for moment in host.moments)), key=lambda size: size.bytes)


def why_no_effect(job: Job, saving: Saving) -> Text:
    """Why a remedy does not lower this peak, or too little."""
    group, share = job.largest
    values = {"share": f"{share:.0%}", "what": phrase(f"plan.group_{group}")}
    saved = 0 if saving.moment else saving.bytes.bytes
    if saved < 2**20:
        return phrase("plan.no_effect", **values)
    shortage = job.bench.shortage
    if shortage is None or shortage.bytes <= 0:
        return phrase("plan.too_little_free", saves=show(saved), **values)
    return phrase("plan.too_little", saves=show(saved), shortage=show(shortage.bytes), **values)
