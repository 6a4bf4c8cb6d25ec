"""Reports knobs that two files of a job set differently: which value wins, or that the start fails (`integrations` of a table)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from diagnose.adapters.formats.config_value import name_of
from diagnose.adapters.formats.settings import Entry
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.table_types import Table
from diagnose.adapters.translate.config_part import Part, Translation
from diagnose.facts import Fact, FactBook, Notice, Witness, declared
from diagnose.phrases import Text, phrase
from diagnose.word_conditions import word

#: Limit of messages per job.
MAX_NOTICES = 20


def find_conflicts(parts: Sequence[Part], translations: Sequence[Translation], book: FactBook) -> tuple[list[Fact], list[Notice]]:
    """Facts and notices for knobs that two parts set differently and for batch sizes that do not multiply."""
    pairs = [*_engine_conflicts(parts, translations), *_batch_conflicts(parts, translations, book)]
    pairs += islice(_overridden_settings(parts, translations), MAX_NOTICES)
    reported: set[tuple[str, object, str, int]] = set()
    facts: list[Fact] = []
    notices: list[Notice] = []
    for fact, notice in pairs:
        place = (notice.code, fact.value, fact.witness.source, fact.witness.line)
        if place not in reported:
            reported.add(place)
            facts += [fact] if notice.code == "config.conflict" else []
            notices.append(notice)
    return facts, notices[:MAX_NOTICES]


def integration(engine: Table, trainer: str) -> Mapping[str, Any] | None:
    """How the trainer, or one that it extends, resolves conflicts with the engine's file; None if unknown."""
    return next((way for name in framework_tables.lineage(trainer) for way in engine.integrations if name in way["frameworks"]), None)


def refused_keys(engine: str, trainer: str) -> Sequence[str]:
    """The keys of an engine's file that a trainer refuses to start with where its own settings say otherwise."""
    way = integration(framework_tables.table(engine), trainer) if engine != trainer else None
    return way.get("refuses", ()) if way else ()


def _engine_conflicts(parts: Sequence[Part], translations: Sequence[Translation]) -> Iterator[tuple[Fact, Notice]]:
    """Conflicts between the trainer's settings and its engine's."""
    for trainer, trainer_result in zip(parts, translations, strict=True):
        if not trainer.table.trainer or trainer.origin == "log":
            continue
        for engine, engine_result in zip(parts, translations, strict=True):
            way = integration(engine.table, trainer.table.name) if engine.table is not trainer.table else None
            for outcome in ("refuses", "trainer", "engine") if way else ():
                for entry, knob in _entries_of_keys(engine_result, way.get(outcome, ()) if way else ()):
                    first, second = _configured_fact(trainer_result, knob), _configured_fact(engine_result, knob)
                    if first is not None and second is not None and _differ(first, second):
                        yield _conflict(first, second, outcome, way["called"] if way else {}, entry.key)


def _entries_of_keys(translation: Translation, keys: Sequence[str]) -> Iterator[tuple[Entry, str]]:
    for entry in translation.entries:
        if name_of(entry.key) in keys:
            yield from ((entry, knob) for knob in entry.knobs)


def _configured_fact(translation: Translation, knob: str) -> Fact | None:
    return next((fact for fact in translation.facts if fact.name == knob and fact.value is not None and fact.origin == "config"), None)


def _differ(first: Fact, second: Fact) -> bool:
    """Whether the values conflict; pure_bf16 and fp8 are compatible with an engine's bf16."""
    return first.value != second.value and not {"pure_bf16", "fp8"} & {first.value, second.value}


def _conflict(first: Fact, second: Fact, outcome: str, called: Mapping[str, str], key: str) -> tuple[Fact, Notice]:
    values = {
        "name": _knob_name(first.name).en,
        "value": _short_value(first),
        "place": _place(first.witness),
        "spelt": _without_braces(key),
    }
    others = {"other": _short_value(second), "there": _place(second.witness)}
    en = phrase(f"adapters.conflict_{outcome}", **values, **others, who=called.get("en", "")).en
    zh = phrase(f"adapters.conflict_{outcome}", **{**values, "name": _knob_name(first.name).zh}, **others, who=called.get("zh", "")).zh
    return Fact("config.conflict", first.name, "config", second.witness), Notice("warning", "config.conflict", Text(en, zh), second.witness)


def _knob_name(knob: str) -> Text:
    entry = declared(knob)
    return Text(entry.en, entry.zh) if entry else Text(knob, knob)


def _place(witness: Witness) -> str:
    return _without_braces(f"{witness.source.rpartition('/')[2]}:{witness.line}")


def _short_value(fact: Fact) -> str:
    return _without_braces((word(fact.value) or "-")[:80])


def _without_braces(text: str) -> str:
    """Braces are placeholders in a sentence."""
    return text.replace("{", "(").replace("}", ")")


def _batch_conflicts(parts: Sequence[Part], translations: Sequence[Translation], book: FactBook) -> Iterator[tuple[Fact, Notice]]:
    """DeepSpeed asserts: global batch = micro batch * accumulation * data-parallel ranks."""
    ranks = book.count("parallel.data")
    for part, translation in zip(parts, translations, strict=True):
        if not any(way.get("multiplies") for way in part.table.integrations) or not ranks:
            continue
        global_batch = _configured_fact(translation, "train.global_batch")
        micro, steps = (book.count(name) for name in ("train.micro_batch_size", "train.gradient_accumulation"))
        if global_batch is None or not micro or not steps or global_batch.value == micro * steps * ranks:
            continue
        product = f"{micro} * {steps} * {ranks} = {micro * steps * ranks}"
        message = phrase(
            "adapters.conflict_sum",
            spelt=global_batch.witness.key,
            value=_short_value(global_batch),
            place=_place(global_batch.witness),
            sum=product,
        )
        yield (
            Fact("config.conflict", "train.global_batch", "config", global_batch.witness),
            Notice("warning", "config.conflict", message, global_batch.witness),
        )


def _overridden_settings(parts: Sequence[Part], translations: Sequence[Translation]) -> Iterator[tuple[Fact, Notice]]:
    """Settings of a file that the command line of the same framework overrides."""
    for index, (part, translation) in enumerate(zip(parts, translations, strict=True)):
        if part.form not in ("shell", "command") or not part.table.trainer or part.origin == "log":
            continue  # what the log shows otherwise is a disagreement
        for file, file_translation in zip(parts[index + 1 :], translations[index + 1 :], strict=True):
            if file.form not in ("yaml", "json", "toml") or file.table.name != part.table.name:
                continue
            for fact in translation.facts:
                loser = _configured_fact(file_translation, fact.name)
                if fact.name.startswith(("config.", "run.")) or loser is None or fact.value is None or fact.value == loser.value:
                    continue
                if not fact.witness.key:
                    continue
                values = {
                    "name": _without_braces(loser.witness.key or fact.name),
                    "value": _short_value(fact),
                    "other": _short_value(loser),
                }
                message = phrase("adapters.overridden", **values, place=_place(fact.witness), there=_place(loser.witness))
                yield fact, Notice("info", "config.overridden", message, loser.witness)
