"""The regime: what kind of program failed (rules/regimes/*.yaml), from frames, words, settings and facts. Nothing speaks for training by
default; without evidence the regime is unknown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from diagnose import families, rule_files
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.decide.comparison import holds
from diagnose.decide.expression import comparison_of, parse, to_data
from diagnose.facts import Fact, FactBook, Witness, derived_fact, require_declared
from diagnose.parse.facts import drawing_models, projects, text_figures
from diagnose.parse.facts import mentioned_models as mentions_of
from diagnose.parse.model.event import Event, Frame
from diagnose.parse.text import lazy_re
from diagnose.parse.text.find_words import find_word

#: Decibans that the best regime must have, and lead the next by; below them the regime is unknown.
LEAST, LEAD = 10, 5

#: Regimes that say what a program was doing, not what for, the vaguest last: they yield to one that is nearly as likely.
VAGUE = ("data", "load_save", "host")

#: What the name of a program speaks for its regime.
NAMED = 20

#: What the name of a public project speaks for what such projects do.
_PROJECT = 10

#: Regimes that learn, and those that are known to learn nothing.
LEARNING, IDLE = frozenset(("train", "rl")), ("infer", "serve", "generate_media")

#: How much of a config or script is searched for words.
_SEARCHED = 200_000

#: The folders of an environment, whose name is its owner's choice.
_INSTALLED = lazy_re.lazy_compile(r"^.*(?:site|dist)-packages/")

#: Who says something of the run itself: a default or a conclusion is no evidence.
_STATED = ("given", "log", "config", "said", "guessed")

#: One piece of evidence: its weight, and where it stands.
Evidence = tuple[int, Witness]


def project(book: FactBook, sources: Sequence[ConfigSource]) -> Iterator[Fact]:
    """The public project that the files name, where the log or page names none."""
    if "run.task" in book:
        return
    for source in sources:
        named = projects.find(source.data[:_SEARCHED])
        if named is not None:
            witness = Witness(source.name, key=named.name)
            yield Fact("run.project", named.name, "config", witness)
            yield Fact("run.task", named.task, "config", witness)
            return


def drawing_model(book: FactBook, sources: Sequence[ConfigSource]) -> Iterator[Fact]:
    """The model for pictures or clips that the files name, where the log or page names none."""
    if "drawing.network" not in book:
        named = (list(drawing_models.facts_of_file(source.data[:_SEARCHED], source.name)) for source in sources)
        yield from next((found for found in named if found), [])


def mentioned_models(book: FactBook, sources: Sequence[ConfigSource]) -> Iterator[Fact]:
    """The models, pictures and tokens that the files speak of, where neither they nor the log say what runs."""
    if "model.shape" not in book:
        every = [fact for source in sources for fact in mentions_of.facts_of_file(source.data[:_SEARCHED], source.name)]
        yield from (fact for fact in every if fact.name not in book)
    for source in sources:
        yield from text_figures.facts_of_file(source.data, source.name)


def facts(book: FactBook, event: Event | None, sources: Sequence[ConfigSource]) -> Iterator[Fact]:
    """The fact `run.regime`, with the witness of the strongest evidence, whether that regime trains, and the role of what serves. Before a
    run (no `event`) an unknown regime is no fact: what is checked is the run that the configuration describes."""
    regime = book.word("run.regime")
    if regime is None:
        evidence = scores(book, event, sources)
        regime, witness = decided(evidence)
        if regime in ("unknown", "infer") and not _learns(evidence) and (named := book.fact("drawing.network")) is not None:
            regime, witness = "generate_media", named.witness  # such a model draws where nothing speaks of training
        if event is not None or regime != "unknown":
            yield Fact("run.regime", regime, "derived", witness or Witness("derived"))
    program, engine = _program(regime, book, event, sources) or (None, "")
    if program is not None:
        yield program
        family = families.of(book.word("log.family"))
        past_torch = engine in rule_files.table("vocabulary")["engines_without_torch"]
        runs_it = not (past_torch and family.allocator and not family.shared)
        if regime in IDLE and runs_it and "rollout.engine" not in book and engine in require_declared("rollout.engine").words:
            yield Fact("rollout.engine", engine, "derived", program.witness)
    yield from _sees(program, regime, book)
    yield from _takes(regime, book)
    if book.switch("train.enabled") is None and (regime in LEARNING or regime in IDLE):
        yield derived_fact("train.enabled", regime in LEARNING, f"run.regime = {regime}")
    role = {"serve": "engine", "train": "train"}.get(regime)
    if role is not None and book.word("log.role") is None:
        yield derived_fact("log.role", role, f"run.regime = {regime}")


def _sees(program: Fact | None, regime: str, book: FactBook) -> Iterator[Fact]:
    """The fact `run.sees`: what the samples of the program are; where it does not say so, pictures if only
    they have a size (what draws them reads none)."""
    for row in _rules()["programs"]:
        if program is not None and row["program"] == program.value and "sees" in row:
            yield Fact("run.sees", row["sees"], "derived", program.witness)
            return
    pixels = rule_files.table("vocabulary")["pixels"]
    task = book.fact("run.task")
    if task is not None and regime not in pixels["not_in"] and (sees := rule_files.table("projects")[task.value].get("sees")):
        yield Fact("run.sees", sees, "derived", task.witness)
        return
    size = next((fact for name in pixels["shown_by"] if (fact := book.fact(name)) is not None and fact.value is not None), None)
    if size is not None and regime not in pixels["not_in"] and all(book.value(name) is None for name in pixels["unless"]):
        yield Fact("run.sees", "pixels", "derived", size.witness)


def _takes(regime: str, book: FactBook) -> Iterator[Fact]:
    """The fact `run.takes`: one item at a time, or none where no network runs (where such programs only run, and `none` only where no
    library for networks ran out), or a whole graph, and no batch that anything speaks of."""
    task = book.fact("run.task")
    row = rule_files.table("projects")[task.value] if task is not None else {}
    learns = regime in LEARNING or (regime == "unknown" and "train" in row.get("does", ()))
    fits = row.get("takes") == "none" and "train" in row.get("does", ())  # trees are grown without a network
    if task is None or "takes" not in row or (row["takes"] in ("one", "none") and learns and not fits):
        return
    family = families.of(book.word("log.family"))
    if row["takes"] == "none" and (family.allocator or family.shared):
        return
    batch = max((book.count(name) or 1 for name in ("infer.batch_size", "train.micro_batch_size")), default=1)
    yield Fact("run.takes", "batch" if batch > 1 else row["takes"], "derived", task.witness)


def _program(regime: str, book: FactBook, event: Event | None, sources: Sequence[ConfigSource]) -> tuple[Fact, str] | None:
    """The fact `run.program`, with its engine: the program of this regime that the traceback shows, else the one named first in log or
    page (of those with one engine the first row of rules/regimes that fits), else whose words stand in files, else the engine that is
    known to run."""
    engine = book.fact("rollout.engine")
    known = engine is not None and engine.value not in (None, "none", "hf")
    rows = [row for row in _rules()["programs"] if regime in (*row["regimes"], "unknown")]
    rows = [row for row in rows if not (known and engine and row["engine"] != engine.value)]
    trainer = book.fact("train.framework")
    rows = [row for row in rows if trainer is None or trainer.value not in row.get("beneath", ())]
    frames = [_INSTALLED.sub("", frame.file.replace("\\", "/")) for frame in event.frames] if event is not None else []
    for row in rows:
        if "file" in row and event is not None and any(lazy_re.matches_pattern(row["file"], file) for file in frames):
            return Fact("run.program", row["program"], "derived", event.evidence[:2][-1]), row["engine"]
    if trainer is not None and (own := next((row for row in rows if row["program"] == trainer.value), None)) is not None:
        return Fact("run.program", trainer.value, "derived", trainer.witness), own["engine"]
    words = {fact.value: fact.witness for fact in book.all("run.word")}
    texts = [(source.name, source.data[:_SEARCHED]) for source in sources]
    speaking = [(row, found) for row in rows if (found := next((words[word] for word in row.get("words", ()) if word in words), None))]
    programs = {row["program"] for row, _ in speaking}
    named: dict[str, tuple[Fact, str]] = {}
    for row, found in speaking:
        if programs.isdisjoint(row.get("beneath", ())):
            named.setdefault(row["engine"], (Fact("run.program", row["program"], "derived", found), row["engine"]))
    if named:
        return min(named.values(), key=lambda pair: pair[0].witness.line)
    for row in rows:
        for word in row.get("words", ()):
            if (name := next((name for name, text in texts if find_word(text, word.encode()) >= 0), None)) is not None:
                return Fact("run.program", row["program"], "derived", Witness(name, key=word)), row["engine"]
    if known and engine is not None and regime in IDLE:
        return Fact("run.program", engine.value, "derived", engine.witness), str(engine.value)
    return None


def decided(evidence: Mapping[str, Mapping[str, Evidence]]) -> tuple[str, Witness | None]:
    """The regime that the evidence speaks for most, and the witness of its strongest piece; "unknown" where none leads enough."""
    totals = {regime: sum(weight for weight, _ in kinds.values()) for regime, kinds in evidence.items()}
    best = max(totals.values(), default=0)
    if best < LEAST:
        return "unknown", None
    near = [regime for regime in totals if totals[regime] > best - LEAD and totals[regime] >= LEAST]
    chosen = [regime for regime in near if regime not in VAGUE] or [next(regime for regime in VAGUE if regime in near)]
    if len(chosen) > 1:
        return "unknown", None
    return chosen[0], max(evidence[chosen[0]].values(), key=lambda piece: piece[0])[1]


def _learns(evidence: Mapping[str, Mapping[str, Evidence]]) -> bool:
    """Whether anything speaks for a regime that learns."""
    return any(weight > 0 for regime in LEARNING for weight, _ in evidence.get(regime, {}).values())


def scores(book: FactBook, event: Event | None, sources: Sequence[ConfigSource]) -> dict[str, dict[str, Evidence]]:
    """Per regime the strongest evidence of each kind. What trains with reinforcement trains: it has the evidence of both. What draws only
    runs its model, and words that say so speak for it too."""
    found: dict[str, dict[str, Evidence]] = {}
    for regime, kind, weight, witness in _evidence(book, event, sources):
        best = found.setdefault(regime, {}).get(kind)
        if best is None or abs(weight) > abs(best[0]):
            found[regime][kind] = (weight, witness)
    if any(weight > 0 for weight, _ in found.get("rl", {}).values()):
        found["rl"] |= {f"train {kind}": piece for kind, piece in found.get("train", {}).items()}
    if sum(weight for weight, _ in found.get("generate_media", {}).values()) >= LEAST and "words" in found.get("infer", {}):
        found["generate_media"]["infer words"] = found["infer"]["words"]
    return found


def _evidence(book: FactBook, event: Event | None, sources: Sequence[ConfigSource]) -> Iterator[tuple[str, str, int, Witness]]:
    """Regime, kind, weight and witness of everything that speaks for or against a regime."""
    rules = _rules()
    for fact in book.all("run.word"):
        for regime, weight in rules["words"].get(fact.value, ()):
            yield regime, "words", weight, fact.witness
    yield from _of_project(book)
    for source in sources:
        text = f"{Path(source.called or source.name).name}\n".encode(errors="replace") + source.data[:_SEARCHED]
        for word, told in rules["words"].items():
            if find_word(text, word.encode()) >= 0:
                yield from ((regime, "words", weight, Witness(source.name, key=word)) for regime, weight in told)
    if event is not None and event.frames:
        place = event.evidence[:2][-1]
        yield from ((regime, "frames", weight, place) for regime, weight in _of_frames(tuple(event.frames)))
    for name, told in rules["settings"].items():
        setting = book.fact(name)
        if setting is not None and setting.value is not None and setting.origin in _STATED:
            yield from ((regime, "settings", weight, setting.witness) for regime, weight in told)
    for regime, weight, conditions in rules["signs"]:
        if all(holds(condition, book.value) is True for condition in conditions):
            sign = next((book.fact(name) for condition in conditions for name in condition.names if book.fact(name)), None)
            yield regime, "signs", weight, sign.witness if sign is not None else Witness("derived")


def _of_project(book: FactBook) -> Iterator[tuple[str, str, int, Witness]]:
    """What the named project speaks for, unless such projects train as often as not."""
    task = book.fact("run.task")
    if task is None:
        return
    does = rule_files.table("projects")[task.value]["does"]
    if len({regime in LEARNING for regime in does}) == 1:
        yield does[0], "words", _PROJECT, task.witness


@lru_cache(maxsize=1024)
def _of_frames(frames: tuple[Frame, ...]) -> tuple[tuple[str, int], ...]:
    """Regimes that a traceback shows, with the weight; cached, because the same code fails in many jobs."""
    found = []
    for regime, weight, row in _rules()["frames"]:
        for frame in frames:
            parts = {"function": frame.function.rsplit(".", 1)[-1], "file": frame.file.replace("\\", "/"), "statement": frame.statement}
            if all(lazy_re.matches_pattern(row[part], parts[part]) for part in parts if part in row):
                found.append((regime, weight))
                break
    return tuple(found)


@lru_cache(maxsize=1)
def _rules() -> dict[str, Any]:
    """All rules by kind: words and settings with what they speak for, frames and signs as rows."""
    compiled = rule_files.kept("decide.regimes", _compiled, "regimes")
    compiled["signs"] = [(regime, weight, [comparison_of(line) for line in lines]) for regime, weight, lines in compiled["signs"]]
    return dict(compiled)


def _compiled() -> dict[str, Any]:
    words: dict[str, list[Any]] = {}
    settings: dict[str, list[Any]] = {}
    frames: list[Any] = []
    signs: list[Any] = []
    programs: list[Any] = []
    for rule in rule_files.table("regimes").values():
        regime = rule["regime"]
        for table, kind in ((words, "words"), (settings, "settings")):
            for weight, names in rule.get(kind, {}).items():
                for name in names:
                    table.setdefault(name, []).append((regime, int(weight)))
        for row in rule.get("programs", ()):
            programs.append({"engine": row["program"], **row, "regimes": [regime, *row.get("also", ())]})
            if not row.get("speaks", True):
                continue
            for word in row.get("words", ()):
                words.setdefault(word, []).append((regime, NAMED))
            if "file" in row:
                frames.append((regime, NAMED, {"file": row["file"]}))
        frames += [(regime, int(weight), row) for weight, rows in rule.get("frames", {}).items() for row in rows]
        signs += [(regime, sign["weight"], [to_data(parse(line)) for line in sign["when"]]) for sign in rule.get("signs", ())]
    return {"words": words, "settings": settings, "frames": frames, "signs": signs, "programs": programs}
