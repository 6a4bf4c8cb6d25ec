"""Facts of the failure itself: its figures, how far the job was, what else the log shows at that point."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from diagnose.facts import Fact, Value, Witness
from diagnose.parse import doing, growth, host_oom, progress
from diagnose.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from diagnose.parse.event import Event, Frame
    from diagnose.parse.events import Seen
    from diagnose.parse.lines import Page
    from diagnose.parse.progress import Bar

#: Facts that are a field of the event under the same name.
_FIELDS = (
    "family",
    "phase",
    "requested",
    "capacity",
    "free",
    "allowed",
    "allocated",
    "reserved_unallocated",
    "reserved_total",
    "private_pools",
    "gpu",
    "rank",
)

_SITE = re.compile(r".*(?:site|dist)-packages/|.*transformers_modules/")
_PASSES_ON = re.compile(r"^(_wrapped_call_impl|_call_impl|inner|wrapper|wrapped_fn|<module>)$")
#: Statements that only one attention implementation runs.
_ATTENTION = (
    ("flash_attention_2", re.compile(r"flash_attn|flash_attention_forward|flash_attn_cuda")),
    ("sdpa", re.compile(r"scaled_dot_product_attention")),
    (
        "eager",
        re.compile(
            r"attn_(?:weights|scores|probs)\s*=.*softmax|attention_(?:probs|scores)\s*=.*softmax|eager_attention_forward"
            r"|att(?:entio)?n_(?:weights|scores)\s*=\s*(?:torch\.(?:matmul|bmm|baddbmm)|attention_scores\s*[/+])"
        ),
    ),
)
_WAKING = (b"Sleep mode freed", b" to wake up", b"sleep mode freed")
_SMI_APP = re.compile(
    rb"\| {1,8}(\d{1,3}) {1,8}\S{1,8} {1,8}\S{1,8} {1,16}(\d{1,9}) {1,8}[CGM+]{1,3} {1,8}(\S[^|\n]{0,120}?) {1,60}(\d{1,9})MiB \|"
)


def facts(root: Event, one: Seen) -> Iterator[Fact]:
    """What the root event and the lines before it say, as facts."""
    place = root.evidence[0]

    def fact(name: str, value: Value, witness: Witness = place) -> Fact:
        return Fact(name, value, "log", witness)

    for name in _FIELDS:
        value: Value = getattr(root, name)
        if value is not None and value != "unknown":
            # a report of host memory prints the node's capacity, not a card's
            yield fact("host.ram" if name == "capacity" and root.family in host_oom.KILLS else f"log.{name}", value)
    if one.message.check == "cache_too_small":
        yield fact("log.cache_none", one.message.no_cache)
    if one.message.served is not None:
        yield fact("rollout.max_model_len", one.message.served)
    if root.role is not None:
        yield fact(
            "log.role", root.role, one.page.witness(one.page.excerpt.offset + one.page.starts[one.trace.head]) if one.trace.actor else place
        )
    yield from _processes(root, place)
    if root.frames:
        frame = root.evidence[1] if len(root.evidence) > 1 else place
        yield fact("log.frame", _named(root.frames), frame)
        activity = doing.of_frames(root.frames)
        if activity:
            yield fact("log.doing", activity, frame)
        stage = doing.stage_of_frames(root.frames)
        if stage:  # a trainer may serve a method beside its own (ORPO in a DPO trainer): a config knows better
            yield Fact("train.stage", stage, "derived", frame)
    yield fact("log.proved", root.status == "oom")
    yield fact("log.engine_check", one.message.check or _check_by_frames(root))
    if root.phase != "unknown":
        yield fact("log.evaluating", root.phase == "eval")
        yield fact("log.saving", root.phase == "checkpoint_save")
    yield from _attention(one)
    yield from _progress(one)
    yield from _after_evaluation(one)
    grows = growth.of_lines(one.bytes_before(1 << 20))
    if grows is not None:
        yield fact("log.memory_grows", grows)
    yield from _engine(root, one)
    yield from _host(one)


def _check_by_frames(root: Event) -> str:
    """The engine's warm-up fails with torch's own message: only the frames tell that it was one."""
    return "warm_up" if doing.of_frames(root.frames) == "warm_up_engine" else "none"


def _processes(root: Event, place: Witness) -> Iterator[Fact]:
    """What the failed process holds, and what others hold, where the message names processes."""
    if root.process_in_use is None or not root.process_in_use.bytes:
        return
    yield Fact("log.process_in_use", root.process_in_use, "log", place)
    others = [other.in_use for other in root.other_processes if not other.own]
    if None not in others:
        total = sum((size for size in others if size is not None), start=Size.exactly(0))
        yield Fact("log.other_processes", total, "log", place)


def _named(frames: Sequence[Frame]) -> str:
    """The innermost frame that is more than a call passed on, as package/file.py:function."""
    frame = next((frame for frame in reversed(frames) if not _PASSES_ON.match(frame.function)), frames[-1])
    return f"{_SITE.sub('', frame.file)}:{frame.function}"


def _attention(one: Seen) -> Iterator[Fact]:
    """The attention implementation, where a frame runs what only one of them has."""
    for frame, index in zip(reversed(one.trace.frames), reversed(one.trace.places), strict=True):
        name = next(
            (name for name, words in _ATTENTION if words.search(f"{frame.statement} {frame.function}") and "vision" not in frame.function),
            None,
        )
        if name is not None and not _is_softmax_alone(frame):
            yield Fact("model.attention", name, "log", one.page.witness(one.page.excerpt.offset + one.page.starts[index]))
            return
    caller = next(
        (
            (f, i)
            for f, i in zip(one.trace.frames, one.trace.places, strict=True)
            if re.match(r"attn_(?:weights|scores|probs) = nn\.functional\.softmax\(", f.statement)
        ),
        None,
    )
    if caller is not None:
        yield Fact("model.attention", "eager", "log", one.page.witness(one.page.excerpt.offset + one.page.starts[caller[1]]))


def _is_softmax_alone(frame: Frame) -> bool:
    return frame.function == "softmax"


def _progress(one: Seen) -> Iterator[Fact]:
    """Optimizer steps, rounds and micro batches that the bars show as done."""
    raw = one.bytes_before()
    start = one.offset - len(raw)
    began, ended = max(raw.rfind(text) for text in (b"Running Evaluation", b"Running Prediction")), raw.rfind(b"'eval_loss'")
    done = progress.before(raw, began if began > ended else -1, _planned(one.page))

    def fact(name: str, bar: Bar, value: int) -> Fact:
        return Fact(name, value, "log", one.page.witness(start + bar.at))

    if done.steps is not None:
        yield fact("log.step", done.steps, done.steps.step)
        if done.steps.total and _planned(one.page) is None:
            yield fact("log.total_steps", done.steps, done.steps.total)
    if done.rounds is not None:
        yield fact("log.rounds_done", done.rounds, done.rounds.step)
        if done.rounds.step and done.steps is None:  # each round has at least one optimizer step
            yield fact("log.step", done.rounds, done.rounds.step)
    if done.micro is not None and done.micro.step < done.micro.total:
        yield fact("log.micro_step", done.micro, done.micro.step)


def _after_evaluation(one: Seen) -> Iterator[Fact]:
    """Whether an evaluation was the last thing that passed: no loss was printed since, and no bar went on."""
    raw = one.bytes_before(1 << 20)
    ended = raw.rfind(b"'eval_loss'")
    if ended < 0:
        return
    ahead = {(bar.label, bar.total): bar.step for bar in progress.bars(raw[:ended])}
    on = any(bar.step > ahead.get((bar.label, bar.total), bar.step) for bar in progress.bars(raw[ended:]))
    place = one.page.witness(one.offset - len(raw) + ended)
    yield Fact("log.after_eval", not on and b"'loss'" not in raw[ended:], "log", place)


def _planned(page: Page) -> int | None:
    match = re.search(rb"Total optimization steps = ([\d,]{1,20})", page.excerpt.raw)
    return int(match[1].replace(b",", b"")) if match else None


def _engine(root: Event, one: Seen) -> Iterator[Fact]:
    """Whether the rollout engine was awake, and what its process holds on this card."""
    raw = one.bytes_before(1 << 20)
    last = max(_WAKING, key=raw.rfind)
    at = raw.rfind(last)
    if at < 0:
        return
    place = one.page.witness(one.offset - len(raw) + at)
    yield Fact("log.engine_awake", last == b" to wake up", "log", place)
    budget = re.findall(rb"gpu_memory_utilization \([\d.]{1,12}\) = (\d{1,6}\.\d{1,4})GiB", raw)
    if not budget:
        return
    size = Size.printed(budget[-1].decode(), "GiB")
    for other in root.other_processes:  # the process that holds what the engine may take, and its context
        if size is not None and other.in_use is not None and not other.own and size.bytes * 0.95 <= other.in_use.bytes <= size.bytes * 1.15:
            yield Fact("log.engine_in_use", other.in_use, "log", root.evidence[0])
            return


def _host(one: Seen) -> Iterator[Fact]:
    """The node's memory from DeepSpeed's line on the host; processes that share a card from nvidia-smi's table."""
    raw = one.bytes_before(1 << 20)
    start = one.offset - len(raw)
    used = list(re.finditer(rb"CPU Virtual Memory:\s+used = (\d{1,9}(?:\.\d{1,4})?) GB, percent = (\d{1,3}(?:\.\d{1,4})?)%", raw))
    if used and float(used[-1][2]) >= 1:
        held, percent = float(used[-1][1]) * 2**30, float(used[-1][2])
        total = Size.between(int(held / (percent + 0.05) * 100), int(held / (percent - 0.05) * 100), int(held / percent * 100))
        yield Fact("host.ram", total, "derived", one.page.witness(start + used[-1].start()))
    cards: dict[bytes, list[tuple[int, int]]] = {}
    for match in _SMI_APP.finditer(raw):
        cards.setdefault(match[1], []).append((int(match[2]), match.start()))
    if cards:  # a process that is listed on two cards opened a context on one that is not its own
        listed = [pid for held in cards.values() for pid in {pid for pid, _ in held}]
        place = one.page.witness(start + next(iter(cards.values()))[0][1])
        yield Fact("log.strays", len({pid for pid in listed if listed.count(pid) > 1}), "log", place)
    crowded = max(cards.values(), key=len, default=[])
    if len(crowded) > 1:
        place = one.page.witness(start + crowded[-1][1])
        yield Fact("log.processes_on_card", len(crowded), "log", place)
