"""Chooses the value that a remedy gives its knob, and the accompanying changes that keep the training equivalent."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from math import ceil

from diagnose.catalogue import sizes_sold
from diagnose.decide import comparison
from diagnose.decide.expression import node_of
from diagnose.facts import FactBook, Value, declared, typed
from diagnose.plan.pricing.fit import ORDER
from diagnose.plan.pricing.pricer import Bench
from diagnose.plan.remedies.remedy import Fits
from diagnose.plan.remedies.remedy_rules import KEEP_BATCH, Choice, Rule
from diagnose.units import Size

MICRO, ACCUMULATION, LENGTH = "train.micro_batch_size", "train.gradient_accumulation", "train.max_seq_len"
#: Rows per card beyond which nobody looks.
MOST_ROWS = 1024
DEGREES = ("parallel.context", "parallel.tensor", "parallel.pipeline", "parallel.expert")
SHARE, BUDGET, CONTEXT = "rollout.gpu_memory_utilization", "train.token_budget", "rollout.max_model_len"
CAPACITY, WORLD = "hardware.capacity", "parallel.world"

#: Values of one knob that are looked at; of more (an absurd length) only some, evenly spread.
MOST_TRIED = 20_000


def changes_of(
    rule: Rule, bench: Bench, beside: dict[str, Value] | None = None, allowed: Callable[[dict[str, Value]], bool] | None = None
) -> dict[str, Value] | None:
    """The knob changes of a rule, with the value that fits best; None if there is no value to try.

    `beside`: changes already decided by earlier steps of a plan; `allowed`: whether the framework can express a set of changes.
    """
    if rule.turns is None:
        return {}
    tried = [with_companions(rule, bench, value) for value in candidates(rule.turns, rule.to, bench)]
    if allowed is not None and rule.to.aim == "list":
        tried = [changes for changes in tried if allowed(changes)]
    if not tried:
        return None
    if rule.to.aim == "list":
        return first_that_fits(tried, bench, beside or {})
    return nearest_that_fits(tried, bench, beside or {})


def candidates(knob: str, choice: Choice, bench: Bench) -> list[Value]:
    """The values to try, least intrusive first; empty if they are relative to a current value that is unknown."""
    now = bench.book.value(knob)
    if knob == CAPACITY:
        return larger_cards(bench)
    if choice.aim == "list":
        values = [value_for(knob, text, bench.book) for text in choice.values]
        return [
            value
            for value in dict.fromkeys(values)
            if value not in (None, now) and goes_the_way(value, now, choice) and is_legal(knob, value, bench)
        ]
    if not isinstance(now, (int, float)) or isinstance(now, bool):
        return []
    return multiples(knob, float(now), choice, bench, whole=(entry := declared(knob)) is None or entry.kind == "count")


def goes_the_way(value: Value, now: Value, choice: Choice) -> bool:
    """Whether the value lies in the remedy's direction from the current one; True where either is no quantity or nothing is known."""
    amounts = [item.bytes if isinstance(item, Size) else item for item in (value, now)]
    after, before = (item if isinstance(item, (int, float)) and not isinstance(item, bool) else None for item in amounts)
    if not choice.goes or after is None or before is None:
        return True
    return after < before if choice.goes == "down" else after > before


def larger_cards(bench: Bench) -> list[Value]:
    """Capacities of cards on sale that exceed the current card's, ascending; empty if that is unknown."""
    now = bench.book.size("log.capacity") or bench.book.size(CAPACITY)
    return [size for _, size in sizes_sold() if now is not None and size.low > now.high]


def is_legal(knob: str, value: Value, bench: Bench) -> bool:
    """Whether the run accepts the value: a length limit holds a sample's images, a token budget the longest row, a context is
    shorter than the model's own, and a parallel degree divides the cards."""
    too_short = knob == LENGTH and isinstance(value, int) and value < image_tokens(bench)
    shape = bench.book.shape("model.shape")
    beyond = knob == CONTEXT and shape is not None and isinstance(value, int) and 0 < shape.max_len <= value
    return not too_short and not beyond and not beyond_cards(knob, value, bench) and not below_a_row(knob, value, bench)


def beyond_cards(knob: str, value: Value, bench: Bench) -> bool:
    """Whether a parallel degree exceeds the number of cards or does not divide it. Experts are divided among what their own tensor degree
    and the pipeline leave, and into equal parts (Megatron-LM core/parallel_state.py initialize_model_parallel)."""
    count = bench.book.count
    cards = count("actor.gpus") or count("parallel.world")
    if knob not in DEGREES or not isinstance(value, int) or cards is None:
        return False
    if knob == "parallel.expert":
        parts = value * (count("parallel.expert_tensor") or count("parallel.tensor") or 1) * (count("parallel.pipeline") or 1)
        return parts > cards or cards % parts > 0 or (count("model.experts") or value) % value > 0
    return value > cards or cards % value > 0


def below_a_row(knob: str, value: Value, bench: Bench) -> bool:
    """Whether a token budget is too small for the longest row, over the cards that share it: verl refuses such a row or processes it
    whole (utils/seqlen_balancing.py, rearrange_micro_batches)."""
    if knob != BUDGET or not isinstance(value, int):
        return False
    count = bench.book.count
    longest = count(LENGTH) or (count("rollout.prompt_len") or 0) + (count("rollout.completion_len") or 0)
    return value * (count("parallel.context") or 1) < longest


def value_for(knob: str, text: str, book: FactBook) -> Value:
    """The value that a rule's text stands for: `50%` of the current value, `+word` added to the current list, `=formula` over facts, or
    a literal."""
    if text.endswith("%"):
        return share_of(book.value(knob), text)
    if text.startswith("+"):
        return with_word(book.value(knob), text[1:])
    if not text.startswith("="):
        return typed(knob, text)
    result = comparison.value(node_of(json.loads(text[1:])), book.value, "number")
    return int(result) if comparison.is_number(result) else None


def with_word(now: Value, word: str) -> Value:
    """The current comma-separated list with the word added; None if no list is known."""
    if not isinstance(now, str) or not now or now == "none":
        return None
    words = [item.strip() for item in now.split(",")]
    return now if word in words else ",".join((*words, word))


def share_of(now: Value, text: str) -> Value:
    """A percentage of a count (at least 1) or ratio; None for other values."""
    if isinstance(now, bool) or not isinstance(now, (int, float)):
        return None
    part = now * float(text[:-1]) / 100
    return max(1, int(part)) if isinstance(now, int) else round(part, 3)


def multiples(knob: str, now: float, choice: Choice, bench: Bench, whole: bool) -> list[Value]:
    """The multiples of the step between the current value and the limit, starting at the current value."""
    limit = choice.least
    if choice.aim == "largest":
        limit = max(limit, image_tokens(bench) if knob == LENGTH else weights_share(bench) + choice.step if knob == SHARE else 0)
    if choice.aim == "largest":
        start = now if not choice.most else share_with(now, choice, bench)
        start = min(start, free_share(bench)) if knob == SHARE else start
        top = int(start / choice.step + 1e-9)
        top -= top * choice.step >= now
        steps = range(max(top, ceil(limit / choice.step - 1e-9)), ceil(limit / choice.step - 1e-9) - 1, -1)
    else:
        end = float(choice.most or now)
        steps = range(int(now / choice.step + 1e-9) + 1, int(end / choice.step + 1e-9) + 1)
    counts = [*steps[:: -(-len(steps) // MOST_TRIED)], *steps[-1:]] if len(steps) > MOST_TRIED else steps
    values = [round(count * choice.step, 6) for count in counts]
    return [int(value) if whole else value for value in values if (value < now) == (choice.aim == "largest") and value != now]


def image_tokens(bench: Bench) -> float:
    """The tokens that one sample's images take, 0 if unknown: a lower bound for any length limit."""
    shape, pixels = bench.book.shape("model.shape"), bench.book.count("data.image_pixels")
    if shape is None or shape.vision is None or pixels is None or shape.vision.pixels_per_token <= 0:
        return 0
    return pixels / shape.vision.pixels_per_token * (bench.book.count("data.images_per_sample") or 1)


def free_share(bench: Bench) -> float:
    """The share of the card that an engine's start-up check found free, which bounds what it can reserve; 1.0 without such a check."""
    free, capacity = bench.book.size("log.free"), bench.book.size("log.capacity")
    if bench.book.word("log.engine_check") != "card_not_free" or free is None or capacity is None or not capacity.bytes:
        return 1.0
    return free.low / capacity.high


def weights_share(bench: Bench) -> float:
    """The share of the card that an engine's weights take, below which it does not start: in 16 bits, but no more than the log shows
    allocated (weights may be stored in fewer); 0 if unknown."""
    parameters, capacity = bench.book.count("model.total_params"), bench.book.size("log.capacity") or bench.book.size(CAPACITY)
    quantised = any(bench.book.word(name) not in (None, "none") for name in ("model.quantization", "rollout.quantization"))
    if parameters is None or capacity is None or not capacity.bytes or quantised:
        return 0
    weights, allocated = 2 * parameters / (bench.book.count("rollout.tensor_parallel") or 1), bench.book.size("log.allocated")
    if allocated is not None and weights > allocated.high:
        return 0
    return weights / capacity.bytes


def share_with(now: float, choice: Choice, bench: Bench) -> float:
    """A share of the whole row, less the tokens that another part of the row takes (the prompt beside a completion)."""
    neighbour = bench.book.count(choice.beside) or 0 if choice.beside else 0
    return (now + neighbour) * float(choice.most.rstrip("%")) / 100 - neighbour


#: Degrees of parallelism that take ranks from the replicas of the model.
SHARED = ("parallel.tensor", "parallel.context", "parallel.pipeline")


def with_companions(rule: Rule, bench: Bench, value: Value) -> dict[str, Value]:
    """The change and the changes that keep its results: more accumulation for a smaller micro batch, and fixed settings of the rule."""
    if rule.turns is None:
        raise ValueError(f"{rule.id} turns no knob")
    changes: dict[str, Value] = {rule.turns: value}
    for knob, text in rule.companions:
        if text != KEEP_BATCH:
            changes[knob] = value_for(knob, text, bench.book)
        elif (steps := accumulation(bench, value)) is not None:
            changes[knob] = steps
    changes.update(_for_other_replicas(rule.turns, value, bench))
    if rule.turns == CAPACITY and isinstance(value, Size):
        changes.update(as_printed(value, bench))
    return changes


def as_printed(capacity: Size, bench: Bench) -> dict[str, Value]:
    """The figures that the message would have printed on a card of this capacity: the added memory counts as free."""
    now, free = bench.book.size("log.capacity"), bench.book.size("log.free")
    if now is None:
        return {}
    return {"log.capacity": capacity, **({"log.free": free + (capacity - now)} if free is not None else {})}


def _for_other_replicas(knob: str, value: Value, bench: Bench) -> dict[str, Value]:
    """The accumulation that keeps the rows per optimizer step when the number of data-parallel replicas changes: more where ranks now
    share a replica, less where there are more ranks. Empty where a global batch is configured, which does so by itself."""
    steps, before = bench.book.count(ACCUMULATION), bench.book.count(knob) or 1
    if not isinstance(value, int) or not steps or value <= before or value % before or says_rows(bench.book):
        return {}
    times = value // before
    if knob in SHARED:
        return {ACCUMULATION: steps * times}
    return {ACCUMULATION: steps // times} if knob == WORLD and steps % times == 0 else {}


def says_rows(book: FactBook) -> bool:
    """Whether a config states the global batch, from which the accumulation follows."""
    total = book.fact("train.global_batch")
    return total is not None and total.origin == "config"


def accumulation(bench: Bench, micro: Value) -> int | None:
    """The gradient accumulation that keeps the rows per optimizer step; None if the current micro batch is unknown."""
    now = bench.book.count(MICRO)
    if now is None or not isinstance(micro, int) or micro < 1:
        return None
    if bench.book.count(ACCUMULATION) is None and says_rows(bench.book):
        return None  # it follows from the rows of a step
    return max(1, ceil(now * (bench.book.count(ACCUMULATION) or 1) / micro))


def first_that_fits(tried: Sequence[dict[str, Value]], bench: Bench, beside: dict[str, Value]) -> dict[str, Value]:
    """The first changes that surely fit, or whose fit is unknown; if there are none, the first of the best verdict."""
    verdicts: list[Fits] = []
    for changes in tried:
        verdicts.append(bench.fits({**beside, **changes}))
        if verdicts[-1] in ("yes", "unknown"):
            return changes
    best = min(verdicts, key=ORDER.index)
    return tried[-1] if best == "no" else tried[verdicts.index(best)]


def nearest_that_fits(tried: Sequence[dict[str, Value]], bench: Bench, beside: dict[str, Value]) -> dict[str, Value]:
    """The least intrusive changes that surely fit, by bisection (the need falls along the list); if none do, the most intrusive."""
    if bench.fits({**beside, **tried[0]}) in ("yes", "unknown"):
        return tried[0]
    low, high = 0, len(tried) - 1  # the first does not fit; the last is the most that can be done
    if bench.fits({**beside, **tried[high]}) != "yes":
        return tried[high]
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bench.fits({**beside, **tried[middle]}) == "yes" else (middle, high)
    return tried[high]
