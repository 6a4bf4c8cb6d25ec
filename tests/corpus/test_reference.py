"""The reference failures of corpus/: every figure, fact, sum, cause, remedy and reason that their expected.yaml states.

One assertion per parameter, so that a failure names what is missing. The names of facts that are no knobs are suggestions
of expected.yaml; SPELLED says how this project spells them, UNSPELLED which of them it does not know (and a test sees to
it that a fact declared later is looked at).
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from cases import CORPUS, GIB, diagnosed, expected, gib, references, report, run
from collected import for_each

from diagnose.budget.model.ledger import Ledger, Moment
from diagnose.facts import declared
from diagnose.units import BINARY_ALIAS, SCALE, size_of

FIGURES = ("requested", "capacity", "free", "process_in_use", "allocated", "reserved_unallocated")

#: expected.yaml's spelling -> the declared names, any of which may carry it.
SPELLED: dict[str, tuple[str, ...]] = {
    "zero.bf16": ("train.precision",),
    "train.weights_dtype": ("train.load_dtype",),
    "script.model_moved_to_cuda": ("script.cuda_before_shard",),
    "train.gpus": ("run.cuda_devices", "env.cuda_visible_devices"),
    "rollout.awake": ("log.engine_awake",),
    "ring.size": ("parallel.context",),
    "train.attention": ("model.attention",),
    "offload_between_phases": ("rollout.offload_between_phases",),
    "data.response_length": ("data.prompt_lengths", "rollout.completion_len"),
}
#: (fact, expected value) -> the values that mean it here. None: nothing may be known, or the word "none".
MEANS: dict[tuple[str, str], tuple[object, ...]] = {
    ("rollout.engine", "vllm_server"): ("vllm",),
    ("rollout.engine", "enabled"): ("vllm",),
    ("zero.bf16", "enabled"): ("bf16",),
    ("train.gpus", "4,5,6,7"): (4, "4,5,6,7"),
    ("zero.offload_optimizer", "absent"): (None, "none"),
    ("zero.offload_optimizer", "disabled"): (None, "none"),
    ("zero.offload_param", "none"): (None, "none"),
    ("offload_between_phases", "disabled"): (None, "none"),
    ("log.micro_step", "1/2"): (1,),
    ("model.freeze", "enabled"): ("enabled", "vision", "vision_tower", "vision tower"),
}
UNSPELLED = {
    "rollout.gpus",
    "rollout.samples_per_engine_round",
    "critic",
    "script.device_set",
    "log.other_ring_ranks",
}

#: First word or phrase of a ledger term of expected.yaml -> the group of the engine's terms that it belongs to.
GROUPS = {
    "attention scores": "attention_scores",
    "eager, fp32 softmax": "attention_scores",
    "scores in bf16": "attention_scores",
    "attention mask, int64": "samples",
    "sample list": "samples",
    "LoRA adapters": "weights",
    "policy weights": "weights",
    "base weights": "weights",
    "parameters, gradients": "weights",
    "reference model": "extra_models",
    "gradient partition": "gradients",
    "fp32 master": "optimizer_states",
    "Adam moments": "optimizer_states",
    "reduce bucket": "comm_buffers",
    "gathered": "comm_buffers",
    "logits": "logits",
}


#: Where expected.yaml leaves something out of a figure: what its own facts and formulas give, in GiB, which will do too.
CORRECTED = {
    # OpenRLHF builds the critic with eager attention as well where --flash_attn is absent: 4 rows x 32 heads x 2048^2 x (6 + 8) bytes more.
    ("openrlhf-392", "critic"): 69.82 + 4 * 32 * 2048**2 * 14 / GIB,
    # The edits switch on Liger's norm and GLU too (layers 39.81 -> 36.56), and the peak moves from loss_backward to layer_backward.
    # Its experts work one after the other (transformers before 5), so that the layer computed again takes 0.9 GiB less than the hand count.
    ("axolotl-2143-deepseek-v2-lite", "liger_kernel"): 95.63 - 83.88,
}


def items(pick: str) -> list[Any]:
    """One parameter (folder, item) for each entry of a list in each expected.yaml."""
    return [
        pytest.param(name, entry, id=f"{name}-{label(entry)}-{index}")
        for name in references()
        for index, entry in enumerate(expected(name).get(pick) or [])
    ]


def label(entry: Any) -> str:
    """What a failing test calls an entry of expected.yaml."""
    if not isinstance(entry, dict):
        return str(entry)
    return str(next((entry[key] for key in ("name", "id", "fact", "line") if key in entry), ""))


def plain(value: object) -> str:
    """A value as files and reports may spell it: case, quotes and .0 do not matter."""
    text = str(value).strip().strip("'\"").lower()
    return re.sub(r"\.0$", "", text)


def same_value(name: str, wanted: object, found: Any) -> bool:
    """Whether a fact's value in the report is what expected.yaml means."""
    if (name, str(wanted)) in MEANS:
        return found in MEANS[name, str(wanted)]
    if isinstance(found, dict):  # a size
        number, _, unit = str(wanted).partition(" ")
        size = size_of(f"{number} {BINARY_ALIAS.get(unit, unit)}")
        return size is not None and unit.replace("GB", "GiB") in SCALE and found["low"] <= size.high and size.low <= found["high"]
    if isinstance(found, bool):
        return {"enabled": True, "yes": True, "disabled": False, "no": False}.get(plain(wanted)) is found
    if isinstance(wanted, (int, float)) and isinstance(found, (int, float)):
        return float(wanted) == float(found)
    if name in (
        "zero.config",
        "model.path",
    ):  # a path ends in the name; expected.yaml has a model's full id where the file has its last part
        return plain(found).endswith(plain(wanted)) or (bool(found) and plain(wanted).endswith("/" + plain(found)))
    return plain(wanted) == plain(found)


def facts_named(name: str, fact: str) -> list[dict[str, Any]]:
    return [held for held in report(name)["facts"] if held["name"] in SPELLED.get(fact, (fact,))]


def is_read(witness: dict[str, Any]) -> bool:
    """Whether a fact was read out of an input, not derived or known by default."""
    return witness["source"] not in ("catalogue", "default", "given", "derived")


# -- the verdict


@for_each("name", references())
@for_each("key", ["status", "family", "phase"])
def test_verdict(name: str, key: str) -> None:
    assert report(name)["verdict"][key] == expected(name)["verdict"][key]


@for_each(
    "name, mention",
    [pytest.param(n, m, id=f"{n}-{m}") for n in references() for m in expected(n)["verdict"]["headline_must_mention"]],
)
def test_headline(name: str, mention: str) -> None:
    """The one line that everybody reads names what matters, and its figures stand in the Chinese one too."""
    english, chinese = report(name)["verdict"]["headline"], report(name, "zh")["verdict"]["headline"]
    english, chinese = (f"{text} {to_one_decimal(text)}" for text in (english, chinese))
    choices = mention.split(" or ")
    assert any(choice.lower() in english.lower() for choice in choices), english
    assert re.search(r"[\u4e00-\u9fff]", chinese), chinese
    if re.search(r"[\d_]|MLP", mention):
        assert any(choice in chinese for choice in choices), chinese


def to_one_decimal(text: str) -> str:
    """The same text with its sizes shortened: 68.63 GiB is 68.6 GiB, which expected.yaml may ask for."""
    return re.sub(r"(\d+\.\d\d) (?=[KMG]iB)", lambda found: f"{float(found[1]):.1f} ", text)


# -- the events


def flattened(name: str) -> list[dict[str, Any]]:
    """The failures that are no consequences, members of folded ones too."""
    events = [event for event in report(name)["events"] if event["consequence_of"] is None]
    return [each for event in events for each in (event, *event["members"])]


def event_at(name: str, line: int) -> dict[str, Any]:
    at = [event for event in flattened(name) if line in [witness.get("line") for witness in event["evidence"]]]
    assert at, f"no event on line {line}: {[[w.get('line') for w in e['evidence']] for e in flattened(name)]}"
    return at[0]


@for_each(
    "name, line, key, value",
    [
        pytest.param(n, e["line"], key, e[key], id=f"{n}-{e['line']}-{key}")
        for n in references()
        for e in expected(n)["events"]
        for key in FIGURES
    ],
)
def test_printed_figures(name: str, line: int, key: str, value: str) -> None:
    """Every figure of every message is read as it was printed."""
    size = event_at(name, line)[key]
    assert size is not None and size["text"] == value


@for_each("name, event", items("events"))
@for_each("key", ["family", "exception", "rank", "gpu", "phase"])
def test_event(name: str, event: dict[str, Any], key: str) -> None:
    found = event_at(name, event["line"])
    if key == "rank" and found["rank"] is None and "[rank" not in found["evidence"][0]["text"]:
        return  # a Ray worker prints no rank; expected.yaml knows it from elsewhere
    if key in event:
        assert found[key] == event[key]


@for_each("name, event", items("events"))
def test_root(name: str, event: dict[str, Any]) -> None:
    """The first failure is the root; the other ranks are folded into it or stand behind it."""
    root = report(name)["events"][report(name)["verdict"]["event"]]
    found = event_at(name, event["line"])
    assert (found["evidence"][0]["line"] == root["evidence"][0]["line"]) == event["root"]
    if not event["root"] and found in root["members"]:
        assert event["rank"] in root["ranks"] and root["count"] == len(root["members"]) + 1


@for_each("name, event", items("events"))
def test_innermost_frame(name: str, event: dict[str, Any]) -> None:
    if "innermost_frame" in event:
        path, _, function = event["innermost_frame"].rpartition(":")
        frame = event_at(name, event["line"])["frames"][-1]
        assert frame["file"].endswith(path) and frame["function"] == function


@for_each("name, event", items("events"))
def test_other_processes(name: str, event: dict[str, Any]) -> None:
    found = {process["pid"]: process["in_use"]["text"] for process in event_at(name, event["line"])["other_processes"]}
    for process in event.get("other_processes", []):
        assert found.get(process["pid"]) == process["in_use"]


@for_each("fact, key", [("log.usable", "usable_by_torch"), ("log.not_torch", "not_torch"), ("log.foreign", "driver_rest")])
@for_each("name", references())
def test_derived_figure(name: str, fact: str, key: str) -> None:
    """What the printed figures add up to."""
    root = next(event for event in expected(name)["events"] if event["root"])
    if key in root:
        values = [gib(held["value"]) for held in facts_named(name, fact) if held["value"] is not None]
        assert values and values[0] is not None and abs(values[0] - root[key]["gib"]) < 0.02


@for_each("name, echo", items("consequences"))
def test_consequence_is_no_root(name: str, echo: dict[str, Any]) -> None:
    """What other ranks and launchers say afterwards is never taken for a failure of its own."""
    root = report(name)["verdict"]["event"]
    for index, event in enumerate(report(name)["events"]):
        if echo["line"] in [witness.get("line") for witness in event["evidence"][:1]]:
            assert index != root and event["consequence_of"] == root


# -- the facts


@for_each("name, fact", items("facts"))
def test_fact(name: str, fact: dict[str, Any]) -> None:
    """Read with its value from the right line of the right file."""
    if fact["name"] in UNSPELLED:
        return
    found = facts_named(name, fact["name"])
    meant = MEANS.get((fact["name"], str(fact["value"])), ())
    if not found and None in meant:
        return
    right = [held for held in found if same_value(fact["name"], fact["value"], held["value"])]
    assert right, f"{fact['name']} should be {fact['value']}, found {[held['value'] for held in found]}"
    if None in meant:
        return
    places = [(held["witness"]["source"], held["witness"].get("line")) for held in right]
    assert any(source.endswith(fact["file"]) and line == fact["line"] for source, line in places), places


@for_each("name, fact", items("default_facts"))
def test_default_fact(name: str, fact: dict[str, Any]) -> None:
    """What nobody wrote is known from the framework's default, and said to be."""
    if fact["name"] in UNSPELLED:
        return
    found = facts_named(name, fact["name"])
    if not found and None in MEANS.get((fact["name"], str(fact["value"])), ()):
        return
    right = [held for held in found if same_value(fact["name"], fact["value"], held["value"])]
    assert right, f"{fact['name']} should be {fact['value']}, found {[held['value'] for held in found]}"
    if fact["source"].startswith("default"):
        assert any(held["witness"]["source"] == "default" for held in right), [held["witness"] for held in right]


@for_each("name, fact", items("absent_facts"))
def test_absent_fact(name: str, fact: str) -> None:
    """What stands in no file is not read out of one."""
    assert not [held for held in facts_named(name, fact) if is_read(held["witness"]) and held["value"] is not None]


def test_unspelled_facts_are_not_declared() -> None:
    """A fact that this project has learned to name since must leave UNSPELLED, so that its value is tested."""
    assert not [name for name in UNSPELLED if declared(name)]


# -- the ledger


def ledger_of(name: str) -> Ledger:
    """The ledger of the role that failed."""
    ledgers = [ledger for ledger in diagnosed(name).ledgers if ledger.failing]
    return (ledgers or list(diagnosed(name).ledgers))[0]


def moment_of(name: str) -> Moment:
    """The failing moment; where the point is that files and message do not meet, the moment that expected.yaml adds up."""
    want, ledger = expected(name)["ledger"], ledger_of(name)
    failing = ledger.moment(ledger.failing)
    if want.get("contradiction") or failing is None:
        return min(ledger.moments, key=lambda moment: abs(moment.total.bytes / GIB - want["sum_gib"]))
    return failing


def group_of(term: str) -> str:
    return next((group for words, group in GROUPS.items() if words in term), "activations")


@for_each("name", references())
def test_ledger_sum(name: str) -> None:
    """The sum at the failing moment, term for term of expected.yaml, within half a GiB (or 3 %)."""
    want = expected(name)["ledger"]["sum_gib"]
    moment = moment_of(name)
    terms = [(term.key, round(term.size.bytes / GIB, 3)) for term in moment.terms]
    assert moment.total.bytes / GIB == pytest.approx(want, abs=max(0.5, 0.03 * want)), terms


@for_each(
    "name, group",
    [
        pytest.param(n, group, id=f"{n}-{group}")
        for n in references()
        for group in dict.fromkeys(group_of(term["name"]) for term in expected(n)["ledger"]["terms"])
    ],
)
def test_ledger_group(name: str, group: str) -> None:
    """Every kind of memory by its bytes: the engine may split or join terms of one kind, not move bytes between kinds."""
    want = expected(name)["ledger"]
    wanted = sum(term["bytes"] for term in want["terms"] if group_of(term["name"]) == group) / GIB
    moment = moment_of(name)
    found = moment.of(group).bytes / GIB
    terms = [(term.key, term.group, round(term.size.bytes / GIB, 3)) for term in moment.terms]
    assert found == pytest.approx(wanted, abs=max(0.05, 0.03 * want["sum_gib"])), terms


@for_each("name", references())
def test_observed(name: str) -> None:
    """What the message says was allocated stands beside the sum, and the difference is said."""
    want, ledger = expected(name)["ledger"], ledger_of(name)
    assert ledger.observed is not None and ledger.observed.bytes / GIB == pytest.approx(want["observed"]["gib"], abs=0.006)
    if not want.get("contradiction"):
        assert ledger.unexplained is not None
        assert -0.05 * want["observed"]["gib"] <= ledger.unexplained.bytes / GIB <= want["tolerance_gib"] + 0.2


@pytest.mark.parametrize("name", [n for n in references() if expected(n)["ledger"].get("contradiction")])
def test_contradiction_is_said(name: str) -> None:
    """A ledger that does not meet the message is a finding, not a rounding error."""
    verdicts = [held["value"] for held in facts_named(name, "ledger.verdict")]
    assert verdicts == ["below" if expected(name)["ledger"]["sum_gib"] < expected(name)["ledger"]["observed"]["gib"] else "above"]
    explained = " ".join(cause["explanation"] for cause in report(name)["causes"])
    assert f"{expected(name)['ledger']['observed']['gib']:.2f} GiB" in explained, explained


@for_each("name", [n for n in references() if "usable_gib" in expected(n)["ledger"]])
def test_usable(name: str) -> None:
    usable = ledger_of(name).usable
    assert usable is not None and usable.bytes / GIB == pytest.approx(expected(name)["ledger"]["usable_gib"], abs=0.02)


#: What expected.yaml gives of other moments: (folder, moment of the engine or "peak", where it stands).
LATER: list[tuple[str, str, float]] = [
    ("llamafactory-6800", "reference_forward", 44.08),
    ("llamafactory-6800", "peak", 44.08),
    ("axolotl-2143-deepseek-v2-lite", "peak", 93.73),
    ("trl-3172", "peak", 337.9),
    ("openrlhf-392", "peak", 81.8),
    ("openrlhf-392", "optimizer_step", 75.15),
]


@for_each("name, moment, wanted", LATER)
def test_other_moments(name: str, moment: str, wanted: float) -> None:
    """What would have come next: a fix that only moves the crash is no fix."""
    ledger = ledger_of(name)
    found = ledger.peak if moment == "peak" else ledger.moment(moment)
    listed = [(each.name, round(each.total.bytes / GIB, 2)) for each in ledger.moments]
    assert found is not None and found.total.bytes / GIB == pytest.approx(wanted, abs=max(0.5, 0.03 * wanted)), listed


@for_each(
    "name, role",
    [pytest.param(n, r, id=f"{n}-{r['role'].split()[0]}") for n in references() for r in expected(n)["ledger"].get("roles", [])],
)
def test_role(name: str, role: dict[str, Any]) -> None:
    """One ledger per role and group of cards."""
    called = {"critic": "critic", "reward,": "reward", "rollout": "engine"}.get(role["role"].split()[0], role["role"])
    ledgers = [ledger for ledger in diagnosed(name).ledgers if called in ledger.role]
    assert ledgers and ledgers[0].gpus == role["gpus"], [(ledger.role, ledger.gpus) for ledger in diagnosed(name).ledgers]
    peak = ledgers[0].peak
    if "peak" in role:
        wanted = CORRECTED.get((name, called), role["peak"]["gib"])
        assert peak is not None and peak.total.bytes / GIB == pytest.approx(wanted, abs=max(1.0, 0.05 * wanted))
    if role["trained"]:
        forward = ledgers[0].moment("forward_end")  # what a step of the optimizer takes for a moment is no state
        assert forward is not None
        states = forward.of("weights", "gradients", "optimizer_states").bytes
        assert states / GIB == pytest.approx(role["states"]["gib"], abs=1.0)


PRICED = {"as_run": None, "gradient_checkpointing": "gradient_checkpointing", "liger_kernel": "liger_kernel"}


@for_each(
    "name, length, what, wanted",
    [
        pytest.param(n, row["sequence_len"], what, row[what]["gib"], id=f"{n}-{row['sequence_len']}-{what}")
        for n in references()
        for row in expected(n)["ledger"].get("by_length", [])
        for what in PRICED
    ],
)
def test_by_length(name: str, length: int, what: str, wanted: float) -> None:
    """The same job at other lengths, as run and after each remedy."""
    answer = run(name, set={"train.max_seq_len": str(length)})
    if what == "as_run":
        peak = next(ledger for ledger in answer.ledgers if ledger.failing or len(answer.ledgers) == 1).peak
        assert peak is not None and peak.total.bytes / GIB == pytest.approx(wanted, abs=max(0.5, 0.05 * wanted))
    else:
        remedy = next((each for each in answer.outcome.remedies if each.id == what), None)
        assert remedy is not None and remedy.peak is not None
        assert remedy.peak.bytes / GIB == pytest.approx(wanted, abs=max(0.5, 0.1 * wanted))


# -- the attribution


@for_each("name", [n for n in references() if expected(n)["attributions"]])
@for_each("key", ["bytes", "exact", "agrees", "block"])
def test_best_attribution(name: str, key: str) -> None:
    """The tensor that the request was, before and after rounding."""
    want = expected(name)["attributions"][0]
    assert report(name)["attributions"], "nothing attributed"
    best = report(name)["attributions"][0]
    listed = [(a["tensor"], a["bytes"], a["agrees"]) for a in report(name)["attributions"]]
    if key == "bytes":
        assert best["bytes"] == want["bytes"], listed
    elif key == "exact":
        assert (best["exact"] or (best["shown"] and not best["at_least"])) is want["exact_after_rounding"], listed
    elif key == "agrees":
        assert best["agrees"] is want["frame_agrees"], listed
    elif want["block_mib"] is not None:
        assert best["block_bytes"] == want["block_mib"] * 2**20, listed


@for_each("name, entry", items("attributions"))
def test_attribution_is_listed(name: str, entry: dict[str, Any]) -> None:
    """Each tensor that prints alike is named, with whether frame and phase agree."""
    found = [a for a in report(name)["attributions"] if a["bytes"] == entry["bytes"]]
    assert found, [(a["tensor"], a["bytes"]) for a in report(name)["attributions"]]
    if entry["frame_agrees"]:
        assert any(a["agrees"] for a in found)


@pytest.mark.parametrize("name", [n for n in references() if not expected(n)["attributions"]])
def test_nothing_is_attributed(name: str) -> None:
    """2.00 and 20.00 MiB name nothing."""
    assert report(name)["attributions"] == []


# -- the causes


@for_each("name", references())
def test_causes_in_order(name: str) -> None:
    """The causes, best first (as listed, or what is certain before what is likely: docs/rules.md); no stranger among those that lead."""
    causes = expected(name)["causes"]
    wanted = [cause["id"] for cause in causes]
    certain_first = [
        cause["id"] for cause in sorted(causes, key=lambda cause: (cause.get("also_true", False), cause["certainty"] == "likely"))
    ]
    found = [cause["id"] for cause in report(name)["causes"]]
    assert [cause for cause in found if cause in wanted] in (wanted, certain_first), found
    assert found[0] == wanted[0]
    strangers = [cause["id"] for cause in report(name)["causes"] if cause["id"] not in wanted and not cause["also_true"]]
    assert not strangers, found


@for_each("name, cause", items("causes"))
@for_each("key", ["certainty", "also_true", "accounts_for"])
def test_cause(name: str, cause: dict[str, Any], key: str) -> None:
    found = next((each for each in report(name)["causes"] if each["id"] == cause["id"]), None)
    assert found is not None, [each["id"] for each in report(name)["causes"]]
    if key == "certainty":
        assert found["certainty"] == cause["certainty"]
    elif key == "also_true":
        assert found["also_true"] is bool(cause.get("also_true", False))
    elif "accounts_for" in cause:
        assert gib(found["accounts_for"]) == pytest.approx(cause["accounts_for"]["gib"], rel=0.1)


@for_each("name", references())
@for_each("lang", ["en", "zh"])
def test_causes_are_explained(name: str, lang: str) -> None:
    for cause in report(name, lang)["causes"]:
        assert cause["title"] and cause["explanation"] and cause["evidence"]
        if lang == "zh":
            assert re.search(r"[\u4e00-\u9fff]", cause["title"] + cause["explanation"]), cause["id"]


# -- the remedies


def remedy_of(name: str, remedy: str) -> dict[str, Any]:
    found: dict[str, Any] | None = next((each for each in report(name)["remedies"] if each["id"] == remedy), None)
    said = [each["reason"] for each in report(name)["rejected"] if each["id"] == remedy]
    assert found is not None, f"not proposed; rejected: {said}; proposed: {[each['id'] for each in report(name)['remedies']]}"
    return found


@for_each("name", references())
def test_first_remedy(name: str) -> None:
    assert [each["id"] for each in report(name)["remedies"]][:1] == [expected(name)["remedies"][0]["id"]]


@for_each("name, remedy", items("remedies"))
def test_remedy_is_proposed(name: str, remedy: dict[str, Any]) -> None:
    assert remedy_of(name, remedy["id"])["title"]


@for_each("name, remedy", items("remedies"))
def test_remedy_fits(name: str, remedy: dict[str, Any]) -> None:
    """The word of expected.yaml; where it gives no peak, the word that its peak less its saving has in the vocabulary will do too."""
    words = {remedy["fits"]}
    ledger, saves = expected(name)["ledger"], remedy.get("saves") or {}
    if "peak_after" not in remedy and "peak_if_it_went_on" in ledger and "gib" in saves and remedy["fits"] != "unknown":
        share = (ledger["peak_if_it_went_on"]["gib"] - saves["gib"]) / ledger["usable_gib"]
        words.add("yes" if share <= 0.94 else "unlikely" if share <= 1 else "no")
    assert remedy_of(name, remedy["id"])["fits"] in words


@for_each("name, remedy", items("remedies"))
def test_remedy_saves(name: str, remedy: dict[str, Any]) -> None:
    """The difference of two ledgers (or the bound that the message sets), within 0.3 GiB or 5 %."""
    if "saves" not in remedy:
        return
    saves = remedy_of(name, remedy["id"])["saves"]
    if remedy["saves"] is None:
        assert saves is None
    elif "at_most_gib" in remedy["saves"]:
        assert saves is not None and saves["high"] / GIB <= remedy["saves"]["at_most_gib"] + 0.01
    else:
        wanted = {remedy["saves"]["gib"], CORRECTED.get((name, remedy["id"]), remedy["saves"]["gib"])}
        assert saves is not None and any(gib(saves) == pytest.approx(figure, abs=max(0.3, 0.05 * figure)) for figure in wanted)


@for_each("name, remedy", items("remedies"))
@for_each("key", ["results", "speed"])
def test_remedy_price(name: str, remedy: dict[str, Any], key: str) -> None:
    if key in remedy.get("price", {}):
        assert remedy_of(name, remedy["id"])["price"][key] == remedy["price"][key]


@for_each(
    "name, remedy, edit",
    [
        pytest.param(n, remedy["id"], edit, id=f"{n}-{remedy['id']}-{edit.get('key') or edit.get('flag')}")
        for n in references()
        for remedy in expected(n)["remedies"]
        for edit in remedy.get("edits", [])
        if "key" in edit or "flag" in edit
    ],
)
def test_remedy_edit(name: str, remedy: str, edit: dict[str, Any]) -> None:
    """In the framework's own keys, in the file that the user gave, from what stands there."""
    assert_edit(remedy_of(name, remedy)["edits"], edit)


def assert_edit(found: list[dict[str, Any]], wanted: dict[str, Any]) -> None:
    key = str(wanted.get("flag") or wanted["key"])
    if plain(wanted.get("to")) == "ds_z3_offload_config.json":  # the same switch inside the DeepSpeed file will do
        inside = [edit for edit in found if "offload_optimizer" in edit["key"]]
        if inside:
            return
    at = [edit for edit in found if edit["key"].lstrip("-") == key.lstrip("-")]
    assert at, f"{key} is not edited: {found}"
    edit = at[0]
    assert edit["target"].endswith(wanted["file"])
    if "from" in wanted:
        assert (edit["from"] is None) == (wanted["from"] is None) and plain(edit["from"]) == plain(wanted["from"])
    target = wanted.get("value", wanted.get("to", wanted.get("add")))
    if "rename_to" in wanted:
        assert wanted["rename_to"] in (edit.get("renamed"), edit["to"], *(each["key"] for each in found)), found
    elif isinstance(target, list):
        assert all(str(each) in str(edit["to"]) for each in target)
    elif isinstance(target, dict):
        assert all(each in str(edit["to"]) for each in target)
    elif target is True and key.startswith("--"):
        assert plain(edit["to"]) in ("", "true", "none")
    elif target is not None and "http" not in str(target):
        assert plain(edit["to"]) == plain(target)


@for_each("name, entry", items("rejected"))
def test_rejected(name: str, entry: dict[str, Any]) -> None:
    """Advice that people give and that does not help here is named with its reason, in both languages."""
    for lang in ("en", "zh"):
        found = [each for each in report(name, lang)["rejected"] if each["id"] == entry["id"]]
        proposed = [each["id"] for each in report(name)["remedies"] if each["id"] == entry["id"]]
        assert found, f"not rejected{', but proposed' if proposed else ''}"
        assert found[0]["reason"]
        if lang == "zh":
            assert re.search(r"[\u4e00-\u9fff]", found[0]["reason"])


@for_each("name", references())
def test_nothing_is_both_proposed_and_rejected(name: str) -> None:
    proposed = {each["id"] for each in report(name)["remedies"]}
    assert not proposed & {each["id"] for each in report(name)["rejected"]}


# -- questions and plan


@for_each("name", references())
def test_questions(name: str) -> None:
    """At most three, most useful first, with the option that answers each."""
    wanted = [entry["fact"] for entry in expected(name)["questions"] if entry["fact"] not in UNSPELLED]
    found = report(name)["questions"]
    assert len(found) <= 3
    asked = [question["fact"] for question in found]
    places = [next((i for i, fact in enumerate(asked) if fact in SPELLED.get(want, (want,))), None) for want in wanted]
    assert None not in places and places == sorted(place for place in places if place is not None), asked
    for question in found:
        assert question["why"] and question["how"] and question["set"]


@for_each("name", references())
def test_plan_first_step(name: str) -> None:
    plan = report(name)["plan"]
    assert plan is not None and plan["steps"][:1] == expected(name)["plan"]["steps"][:1]


@for_each("name", references())
def test_plan_fits(name: str) -> None:
    plan = report(name)["plan"]
    assert plan is not None and plan["fits"] == expected(name)["plan"]["fits"]


@for_each("name", references())
def test_plan_peak(name: str) -> None:
    plan, want = report(name)["plan"], expected(name)["plan"].get("predicted_peak")
    assert plan is not None
    if want is None:
        assert plan["predicted_peak"] is None
    else:
        assert plan["predicted_peak"] is not None and gib(plan["predicted_peak"]) == pytest.approx(want["gib"], abs=0.5)


@for_each(
    "name, edit",
    [
        pytest.param(n, edit, id=f"{n}-{edit.get('key') or edit.get('flag')}")
        for n in references()
        for edit in expected(n)["plan"].get("edits", [])
        if "key" in edit or "flag" in edit
    ],
)
def test_plan_edit(name: str, edit: dict[str, Any]) -> None:
    plan = report(name)["plan"]
    assert plan is not None
    assert_edit(plan["edits"], edit)


@pytest.mark.parametrize("name", [n for n in references() if expected(n)["plan"].get("env")])
def test_plan_env(name: str) -> None:
    plan = report(name)["plan"]
    assert plan is not None and expected(name)["plan"]["env"] == plan["env"]


@for_each("name", references())
def test_the_inputs_are_whole(name: str) -> None:
    """Every fact and figure of expected.yaml stands in the files as it says (a damaged copy would make the tests above lie)."""
    for fact in expected(name)["facts"]:
        rows = (CORPUS / name / fact["file"]).read_bytes().decode().split("\n")
        assert fact["text"] in rows[fact["line"] - 1], fact["name"]
