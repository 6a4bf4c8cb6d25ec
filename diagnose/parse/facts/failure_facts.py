"""Facts of the failure itself: its figures, the progress of the job, what the log shows at that point."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from diagnose import families, rule_files
from diagnose.facts import Fact, Value, Witness
from diagnose.parse.events import progress
from diagnose.parse.facts import run_memory
from diagnose.parse.frames import activity, partial_traceback, phases
from diagnose.parse.messages import host_oom
from diagnose.parse.text.lazy_re import finds, lazy_compile, matches_pattern
from diagnose.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from diagnose.parse.events.log_events import PlacedMessage
    from diagnose.parse.events.progress import Bar
    from diagnose.parse.model.event import Event, Frame

#: Facts that are a field of the event under the same name.
_FIELDS = (
    "family",
    "phase",
    "requested",
    "capacity",
    "free",
    "allowed",
    "max_allowed",
    "allocated",
    "reserved_unallocated",
    "reserved_total",
    "private_pools",
    "gpu",
    "rank",
)

_SITE = lazy_compile(r".*(?:site|dist)-packages/|.*transformers_modules/")
_PASSES_ON = r"^(_wrapped_call_impl|_call_impl|inner|wrapper|wrapped_fn|<module>)$"
#: Statements that only one attention implementation runs.
_ATTENTION = (
    ("flash_attention_2", r"flash_attn|flash_attention_forward|flash_attn_cuda"),
    ("sdpa", r"scaled_dot_product_attention"),
    (
        "eager",
        (
            r"attn_(?:weights|scores|probs)\s*=.*softmax|attention_(?:probs|scores)\s*=.*softmax|eager_attention_forward"
            r"|att(?:entio)?n_(?:weights|scores)\s*=\s*(?:torch\.(?:matmul|bmm|baddbmm)|attention_scores\s*[/+])"
        ),
    ),
)
#: How the class is printed before torch 2.5, and from then on.
_NAMED = {"torch.cuda.OutOfMemoryError": True, "torch.OutOfMemoryError": False}
_PLANNED = lazy_compile(rb"Total optimization steps = ([\d,]{1,20})")
_EVALUATION = (b"Running Evaluation", b"Running Prediction")
_WAKING = (b"Sleep mode freed", b" to wake up", b"sleep mode freed")


#: Activities of an engine at its start whose failure is a check of its own (words of log.engine_check).
_CHECKS = {"warm_up_engine": "warm_up", "capture_graphs": "graph_capture", "profile_engine": "prefill_too_long"}


def facts(root: Event, placed: PlacedMessage) -> Iterator[Fact]:
    """All facts from the root event and the lines before it."""
    place = root.evidence[0]

    def fact(name: str, value: Value) -> Fact:
        return Fact(name, value, "log", place)

    yield from figures(root)
    for name, printed in placed.message.facts.items():
        yield fact(name, printed)
    if root.role is not None:
        actor = placed.page.witness(placed.page.excerpt.offset + placed.page.starts[placed.trace.head]) if placed.trace.actor else place
        yield Fact("log.role", root.role, "log", actor)
    yield from circumstances(root)
    check = placed.message.check or _check_by_frames(root, placed)
    yield fact("log.engine_check", check)
    loading = root.phase == "model_load" or (root.phase == "unknown" and phases.loaded_last(*placed.span_before()))
    if loading or root.phase != "unknown":
        yield fact("log.loading", loading)
    if check != "none":  # only an engine checks that
        yield fact("log.role", "engine")
    if root.phase == "dataset":  # a loader's worker and a process of the mapping die with the same signal
        loader = "loader" in placed.message.killed or any("torch/utils/data" in frame.file for frame in root.frames)
        yield fact("log.mapping", not (loader or families.of(root.family).loader))
    yield from _attention(placed)
    yield from _progress(placed)
    yield from _after_evaluation(placed)
    yield from _engine(root, placed)
    yield from run_memory.node_memory_before_failure(placed)


def figures(root: Event) -> Iterator[Fact]:
    """What the event itself prints: figures, card, kind."""
    for name in _FIELDS:
        value: Value = getattr(root, name)
        if value is not None and value != "unknown":
            yield Fact(
                host_oom.capacity_of(root.family) if name == "capacity" else f"log.{name}", value, "log", _figure_witness(root, value)
            )


def trainer(root: Event) -> Iterator[Fact]:
    """The framework and the engine whose code failed, for logs that do not name them (these facts come last)."""
    place = root.evidence[:2][-1]
    if name := activity.trainer_of_frames(root.frames):
        yield Fact("train.framework", name, "derived", place)
    if root.role == "engine" and (name := activity.engine_of_frames(root.frames)):
        yield Fact("rollout.engine", name, "derived", place)


def circumstances(root: Event) -> Iterator[Fact]:
    """What follows from its list of processes, its frames and its phase."""
    place = root.evidence[0]
    yield from _processes(root, place)
    if root.frames:
        frame = root.evidence[:2][-1]
        yield Fact("log.frame", _innermost_function(root.frames), "log", frame)
        if architectures := activity.architectures_of_frames(root.frames):
            yield Fact("log.modeling", ",".join(architectures), "log", frame)
        doing = activity.activity_of_frames(root.frames)
        if doing:
            yield Fact("log.doing", doing, "log", frame)
        if doing == "load_optimizer":
            yield Fact("log.resumed", True, "derived", frame)
        if activity.moves_model(root.frames):
            yield Fact("log.trainer_moves_model", True, "log", frame)
        if activity.runs_megatron(root.frames):
            yield Fact("log.megatron", True, "log", frame)
        stage = activity.stage_of_frames(root.frames)
        if stage:  # a trainer may serve a method beside its own (ORPO in a DPO trainer): a config knows better
            yield Fact("train.stage", stage, "derived", frame)
    elif root.source_line and (doing := activity.activity_of_source(root.source_line)):
        yield Fact("log.doing", doing, "log", place)
    yield Fact("log.proved", root.status == "oom", "log", place)
    family = families.of(root.family)
    if family.memory == "card" and not family.allocator and (through := activity.asks_torch(root.exception, root.frames)) is not None:
        yield Fact("log.through_torch", through, "log", place)
    if root.exception in _NAMED:
        yield Fact("log.torch_before_2_5", _NAMED[root.exception], "log", place)
    if root.phase != "unknown":
        yield Fact("log.evaluating", root.phase == "eval", "log", place)
        yield Fact("log.saving", root.phase == "checkpoint_save", "log", place)


def _figure_witness(root: Event, value: Value) -> Witness:
    """The line that prints a figure; reports on host memory have several lines."""
    figure = value.text.partition(" ")[0] if isinstance(value, Size) else ""
    return next((witness for witness in root.evidence if figure and figure in witness.text), root.evidence[0])


def _check_by_frames(root: Event, placed: PlacedMessage) -> str:
    """Which check of an engine failed with torch's own message (trial run, warm-up, graph capture), by the frames or nearby words; "none"
    without one."""
    captures = "Capture cuda graph failed" in placed.words
    said = "capture_graphs" if captures else "" if root.frames else phases.doing_of_lines(*placed.span_before())
    activities = [said] if said else activity.all_activities(root.frames)
    return next((_CHECKS[name] for name in activities if name in _CHECKS), "none")


def _processes(root: Event, place: Witness) -> Iterator[Fact]:
    """What the failed process and others hold, where the message lists processes."""
    yield from _largest(root, place)
    is_known = root.process_in_use is not None and root.process_in_use.bytes > 0
    if is_known:
        yield Fact("log.process_in_use", root.process_in_use, "log", place)
    others = [process.in_use for process in root.other_processes if not process.own]
    if None in others or families.of(root.family).kill:  # those are on the node, not on the card
        return
    total = sum((size for size in others if size is not None), start=Size.exactly(0))
    if not is_known and others:  # one of them may be the process itself
        yield Fact("log.listed_processes", total, "log", place)
    if is_known:
        yield Fact("log.other_processes", total, "log", place)
        if others:
            yield Fact("log.largest_other", max((size for size in others if size is not None), key=lambda size: size.bytes), "log", place)


def _largest(root: Event, place: Witness) -> Iterator[Fact]:
    """The largest process that the message lists, and the sum of those of its kind (Ray writes `ray::Class.method`)."""
    named = [
        (process.name.partition(".")[0], process.in_use) for process in root.other_processes if process.name and process.in_use is not None
    ]
    if not named:
        return
    name, size = max(named, key=lambda entry: entry[1].bytes)
    alike = [in_use for process, in_use in named if process == name]
    yield Fact("log.largest_process", size, "log", place)
    yield Fact("log.largest_name", name, "log", place)
    yield Fact("log.holds_rows", matches_pattern(rule_files.table("holders")["rows"]["says"], name), "log", place)
    yield Fact("log.alike", len(alike), "log", place)
    yield Fact("log.alike_held", sum(alike, start=Size.exactly(0)), "log", place)


def _innermost_function(frames: Sequence[Frame]) -> str:
    """The innermost frame that does more than pass a call on, as package/file.py:function."""
    frame = next((frame for frame in reversed(frames) if not matches_pattern(_PASSES_ON, frame.function)), frames[-1])
    return f"{_SITE.sub('', frame.file)}:{frame.function}"


def _attention(placed: PlacedMessage) -> Iterator[Fact]:
    """The attention implementation, where a frame or the remaining source line is of code that only one of them runs."""
    if not placed.trace.frames:
        name = _implementation("", partial_traceback.source_line_above(placed.page, placed.index, placed.prefix))
        if name is not None:
            yield Fact("model.attention", name, "log", placed.page.witness(placed.page.excerpt.offset + placed.page.starts[placed.index]))
        return
    for frame, index in zip(reversed(placed.trace.frames), reversed(placed.trace.places), strict=True):
        name = _implementation(frame.function, frame.statement)
        if name is not None and not _is_softmax_alone(frame):
            yield Fact("model.attention", name, "log", placed.page.witness(placed.page.excerpt.offset + placed.page.starts[index]))
            return
    caller = next(
        (
            (f, i)
            for f, i in zip(placed.trace.frames, placed.trace.places, strict=True)
            if re.match(r"attn_(?:weights|scores|probs) = nn\.functional\.softmax\(", f.statement)
        ),
        None,
    )
    if caller is not None:
        yield Fact("model.attention", "eager", "log", placed.page.witness(placed.page.excerpt.offset + placed.page.starts[caller[1]]))


@lru_cache(maxsize=1024)
def _implementation(function: str, statement: str) -> str | None:
    """The attention implementation that alone has such a frame; cached, because the same frames recur."""
    return next((name for name, pattern in _ATTENTION if finds(pattern, f"{statement} {function}") and "vision" not in function), None)


def _is_softmax_alone(frame: Frame) -> bool:
    return frame.function == "softmax"


def _progress(placed: PlacedMessage) -> Iterator[Fact]:
    """Optimizer steps, rounds and micro batches that the bars show as done."""
    raw = placed.bytes_before()
    start = placed.offset - len(raw)
    spots, planned = placed.page.excerpt.spots, _planned_steps(placed)
    began = max(raw.rfind(text) for text in _EVALUATION) if spots.any(_EVALUATION) else -1
    ended = raw.rfind(b"'eval_loss'") if began >= 0 else -1
    done = progress.progress_before(raw, began if began > ended else -1, planned, spots.any(progress.COUNTS))

    def fact(name: str, bar: Bar, value: int) -> Fact:
        return Fact(name, value, "log", placed.page.witness(start + bar.at))

    if done.steps is not None:
        yield fact("log.step", done.steps, done.steps.step)
        if done.steps.total and planned is None:
            yield fact("log.total_steps", done.steps, done.steps.total)
    if done.rounds is not None:
        yield fact("log.rounds_done", done.rounds, done.rounds.step)
        if done.rounds.step and done.steps is None:  # each round has at least one optimizer step
            yield fact("log.step", done.rounds, done.rounds.step)
            if done.rounds.total and planned is None:
                yield fact("log.total_steps", done.rounds, done.rounds.total)
    if done.micro is not None and done.micro.step < done.micro.total:
        yield fact("log.micro_step", done.micro, done.micro.step)


def _after_evaluation(placed: PlacedMessage) -> Iterator[Fact]:
    """Whether an evaluation was the last thing that completed: no loss was printed since, and no bar advanced."""
    if not placed.page.excerpt.spots.has(b"'eval_loss'"):
        return
    raw = placed.bytes_before(1 << 20)
    ended = raw.rfind(b"'eval_loss'")
    if ended < 0:
        return
    ahead = {(bar.label, bar.total): bar.step for bar in progress.read_bars(raw[:ended])}
    on = any(bar.step > ahead.get((bar.label, bar.total), bar.step) for bar in progress.read_bars(raw[ended:]))
    place = placed.page.witness(placed.offset - len(raw) + ended)
    yield Fact("log.after_eval", not on and b"'loss'" not in raw[ended:], "log", place)


def _planned_steps(placed: PlacedMessage) -> int | None:
    """The number of steps that this run of the job announced."""
    raw, first = placed.page.excerpt.raw, placed.page.excerpt.offset
    for at in placed.page.excerpt.spots.places(b"Total optimization steps = "):
        match = _PLANNED.match(raw, at, placed.offset - first) if at >= placed.attempt.start - first else None
        if match is not None:
            return int(match[1].replace(b",", b"") or 0)
    return None


def _engine(root: Event, placed: PlacedMessage) -> Iterator[Fact]:
    """Whether the rollout engine was awake, and how much its process holds on this card."""
    if not placed.page.excerpt.spots.any(_WAKING):
        return
    raw = placed.bytes_before(1 << 20)
    last = max(_WAKING, key=raw.rfind)
    at = raw.rfind(last)
    if at < 0:
        return
    place = placed.page.witness(placed.offset - len(raw) + at)
    yield Fact("log.engine_awake", last == b" to wake up", "log", place)
    budget = re.findall(rb"gpu_memory_utilization \([\d.]{1,12}\) = (\d{1,6}\.\d{1,4})GiB", raw)
    if not budget:
        return
    size = Size.printed(budget[-1].decode(), "GiB")
    for process in root.other_processes:  # the process that holds what the engine may take, and its context
        if (
            size is not None
            and process.in_use is not None
            and not process.own
            and size.bytes * 0.95 <= process.in_use.bytes <= size.bytes * 1.15
        ):
            yield Fact("log.engine_in_use", process.in_use, "log", root.evidence[0])
            return
