"""The remedy rules say what the vocabulary knows, in both languages, and their edits are what the patcher writes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from collected import for_each

from diagnose import rule_files
from diagnose.adapters.config_reader import read
from diagnose.adapters.formats.settings import ConfigSource, Document
from diagnose.decide.expression import Choices, Comparison, Figure, names
from diagnose.decide.verdict import Judgement
from diagnose.facts import FactBook, Value, declared, typed
from diagnose.parse.model.reading import Reading
from diagnose.plan.choose.gate import contraindicated, too_unsure
from diagnose.plan.edits import env_edits, knob_edits
from diagnose.plan.edits.sentences import fill_facts
from diagnose.plan.patch import patching
from diagnose.plan.pricing.candidate_values import value_for
from diagnose.plan.pricing.context import Job
from diagnose.plan.remedies.remedy_rules import KEEP_BATCH, Rule, rules

VOCABULARY = rule_files.table("vocabulary")
WORDS = {word for words in VOCABULARY["remedy"].values() for word in words}
#: What a sentence may name besides facts: filled in by the planner.
FILLED = {"value"}
EVERY = rules(trial=True)


def each(field: str) -> list[Any]:
    return [pytest.param(rule, entry, id=f"{rule.id}-{index}") for rule in EVERY for index, entry in enumerate(getattr(rule, field))]


def examples() -> list[Any]:
    """What the files show; the rules at work leave it out."""
    shown = {rule.id: rule_files.table("remedies")[rule.id].get("examples", ()) for rule in EVERY}
    return [pytest.param(rule, entry, id=f"{rule.id}-{index}") for rule in EVERY for index, entry in enumerate(shown[rule.id])]


def test_every_file_can_be_read() -> None:
    """A file that cannot be read sits out silently at run time, so here it must be loud."""
    assert {rule.id for rule in EVERY} == set(rule_files.table("remedies"))


def test_every_word_of_the_vocabulary_has_a_rule_and_no_other() -> None:
    assert {rule.remedy for rule in EVERY} == WORDS


@pytest.mark.parametrize("rule", EVERY, ids=lambda rule: rule.id)
def test_price_and_texts(rule: Rule) -> None:
    """Words of the vocabulary; a title in both languages; a public page."""
    price = VOCABULARY["price"]
    assert rule.results in price["results"] and rule.speed in price["speed"] and rule.effort in price["effort"]
    assert rule.title.en and re.search(r"[\u4e00-\u9fff]", rule.title.zh)
    assert rule.references and all(page.startswith("https://") for page in rule.references)
    assert rule.turns is not None or rule.do is not None


@for_each("rule", [rule for rule in EVERY if rule.turns])
def test_knob_and_values(rule: Rule) -> None:
    """The knob is declared and every fixed value is one of its values."""
    assert rule.turns is not None
    entry = declared(rule.turns)
    assert entry is not None
    nothing = FactBook()
    texts = [text for text in (*rule.to.values, *rule.already) if text[-1:] != "%" and text[:1] not in ("=", "+")]
    values = [value_for(rule.turns, text, nothing) for text in texts]
    assert None not in values
    assert not entry.words or set(values) <= set(entry.words)
    for knob, text in rule.companions:
        assert declared(knob) is not None and (text == KEEP_BATCH or text[:1] == "=" or value_for(knob, text, nothing) is not None)
    assert rule.to.values or rule.to.aim != "list"


@for_each("rule, unless", each("not_when"))
def test_a_reason_names_only_what_its_condition_knows(rule: Rule, unless: Any) -> None:
    """A figure in a reason is known whenever the reason is given; a card may be named by its capability's fact, the weights of
    an engine by their sum."""
    known = {name for comparison in unless.all for name in names(comparison)}
    if known & {"hardware.bf16", "hardware.fa2"}:
        known |= {"hardware.gpu", "hardware.compute_capability"}
    if "rollout.loaded_weights" in known:
        known.add("rollout.loaded_sum")
    for said in unless.reason:
        assert set(re.findall(r"\{([\w.]+)\}", said)) <= known
    assert unless.reason.en.endswith(".") and unless.reason.zh.endswith("。")


def tried(name: str, lines: Sequence[Comparison]) -> list[Value]:
    """Values of a fact among which a comparison that can hold does so: those that it names, and some to either side."""
    entry = declared(name)
    assert entry is not None
    sides = [side for line in lines for side in (line.left, line.right)]
    figures = [figure for side in sides for figure in (side.parts if isinstance(side, Choices) else (side,))]
    named = [figure.text for figure in figures if isinstance(figure, Figure)]
    texts = {
        "switch": ["enabled", "disabled"],
        "size": ["0 B", "512 MiB", "4 GiB", "80 GiB", "1000 GiB"],
        "count": [*(text for text in named if text.isdigit()), "0", "1", "1000"],
        "ratio": [*(text for text in named if text[:1].isdigit()), "0.1", "0.99"],
        "version": [*(text for text in named if text[:1].isdigit()), "0.1.0", "2.11.0", "99.0.0"],
    }.get(entry.kind, [text for text in named if not text[:1].isdigit()] or ["x"])
    if entry.kind == "word" and entry.words:
        texts = [*(text for text in texts if text in entry.words), *entry.words]
    return [typed(name, text) for text in dict.fromkeys(texts)]


@for_each("rule, unless", each("not_when"))
def test_each_contraindication_can_hold_and_is_what_is_said_then(rule: Rule, unless: Any) -> None:
    """None asks for what cannot be, and none stands where an earlier one always comes first."""
    facts = list(dict.fromkeys(name for comparison in unless.all for name in names(comparison)))
    for values in product(*(tried(name, unless.all) for name in facts)):
        book = FactBook().changed(dict(zip(facts, values, strict=True)))
        job = Job(book, (), Judgement((), (), ()), (), lambda _: (), lambda *_: None)
        if job.true(unless.all) is True and contraindicated(rule, job) == unless:
            return
    nothing = Job(FactBook(), (), Judgement((), (), ()), (), lambda _: (), lambda *_: None)
    if unless.even_unknown and too_unsure(rule, nothing) == fill_facts(unless.reason, nothing):
        return
    pytest.fail(f"{rule.id}: {' and '.join(map(str, unless.all))}")


@for_each("rule", EVERY)
def test_both_languages_name_the_same_figures(rule: Rule) -> None:
    texts = [rule.title, rule.do, rule.alone, *(unless.reason for unless in rule.not_when), *(why for _, why in rule.asks)]
    for text in texts:
        if text is not None:
            assert set(re.findall(r"\{([\w.]+)\}", text.en)) == set(re.findall(r"\{([\w.]+)\}", text.zh))


@for_each("rule, asked", each("asks"))
def test_what_is_asked_can_be_answered(rule: Rule, asked: Any) -> None:
    fact, why = asked
    assert declared(fact) is not None
    assert set(re.findall(r"\{([\w.]+)\}", why.en)) <= FILLED


def test_bf16_and_flash_attention_are_barred_from_old_cards() -> None:
    """Every rule that sets them says so itself; no other rule may bring them in by the back door."""
    bars = {"bf16": "hardware.bf16 == disabled", "pure_bf16": "hardware.bf16 == disabled", "flash_attention_2": "hardware.fa2 == disabled"}
    for rule in EVERY:
        given = {*rule.to.values, *(text for _, text in rule.companions)} if rule.turns != "train.load_dtype" else set()
        for value, bar in bars.items():
            if value in given:
                assert [bar] in [[str(one) for one in unless.all] for unless in rule.not_when], rule.id
                unsure = [[str(one) for one in unless.all] for unless in rule.not_when if unless.even_unknown]
                assert value == "flash_attention_2" or ["hardware.bf16 != enabled"] in unsure, rule.id


def test_what_takes_host_memory_is_barred_from_a_host_kill() -> None:
    for rule in EVERY:
        if rule.takes_host and "log.on_card == disabled" not in [str(one) for unless in rule.not_when for one in unless.all]:
            pytest.fail(rule.id)


# -- the edits


def document(framework: str, before: str) -> tuple[Document, FactBook]:
    """The config of an example as a user gives it, and the facts that it says."""
    name = {"openrlhf": "run.sh", "shell": "run.sh", "deepspeed": "ds.json"}.get(framework, "train.yaml")
    source = ConfigSource(name, f"{before}\n".encode(), framework)
    book = FactBook()
    settings = read([source], Reading(), book)
    book.learn(settings.facts)
    return next((one for one in settings.documents if one.name == name), Document(name, framework, "shell", f"{before}\n", ())), book


@for_each("rule, example", examples())
def test_the_patcher_writes_what_the_example_promises(rule: Rule, example: dict[str, str]) -> None:
    """`before`, the knob and the value give `after`: comments, order and all else as they were."""
    assert rule.turns is not None
    held, book = document(example["framework"], example["before"])
    changes = {rule.turns: value_for(rule.turns, example["value"], book)}
    edits = env_edits.edits(changes, book, [held]) if env_edits.is_allocator_knob(rule.turns) else knob_edits.edits([held], book, changes)
    assert edits, "the framework has no key for it"
    assert patching.apply(held, edits).strip() == example["after"].strip()
