"""rules/tensors, typed: the tensors that a request may be for, and whether one fits a failure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any

from diagnose import rule_files
from diagnose.budget.model.role_setup import Setup
from diagnose.budget.model.software_table import table
from diagnose.parse.model.event import Event, Frame
from diagnose.parse.text.lazy_re import finds
from diagnose.records import NamedTuple
from diagnose.word_conditions import conditions, is_one_of

#: The files of the table. Where nothing else decides between two tensors, the earlier one is named.
KINDS = (
    "logits",
    "attention",
    "activations",
    "vision",
    "images",
    "weights",
    "gradients",
    "optimizer",
    "sharding",
    "generation",
    "engine",
    "frames",
    "statements",
    "printed",
)
#: torch's functions and modules, by their path up to the end of its folder.
_OF_TORCH = re.compile(r"(?:[^|]{0,400}(?:-packages|/lib)/)?torch/(?!utils/data/)")
#: What `e`, the width of an element, stands for: 16 bits, then fp32.
WIDTHS = ("2", "4")


class Tensor(NamedTuple):
    """One entry of the table. `bytes`: formulas, likeliest first; `at`, `within`: patterns of the innermost frame, of any frame; `over`:
    letters that are tried with several values where the run does not say them, each with the letter that the values are multiples of ("":
    none); `multiple`: what a length that is solved for has to be a multiple of; `printed`, `says`, `equals`, `memory`: of a tensor that the
    log itself tells of; `avoided`: knobs that do without such a tensor; `lowered`: those that lower one, with their powers, where its
    formula does not tell them; `framed`: only where a frame shows it; `kept`: every layer keeps one for its backward pass."""

    key: str
    group: str
    bytes: tuple[str, ...]
    phases: tuple[str, ...]
    at: tuple[str, ...]
    within: tuple[str, ...]
    when: tuple[str, ...]
    solve: str
    multiple: int
    at_least: bool
    follows: str
    only: tuple[tuple[str, tuple[str, ...]], ...]
    over: tuple[tuple[str, str, tuple[int, ...]], ...]
    avoided: tuple[str, ...]
    lowered: Mapping[str, int]
    framed: bool
    kept: bool
    printed: tuple[str, ...]
    says: tuple[str, ...]
    equals: tuple[str, ...]
    memory: str

    def width(self, symbols: str) -> int | None:
        """Bytes per element in one of its formulas (the first number, 2 or 4), where these follow the run's precision."""
        first = symbols.partition("*")[0]
        return int(first) if self.follows and first in WIDTHS else None

    def phase_fits(self, phase: str) -> bool:
        return phase == "unknown" or phase in self.phases

    def frame_fits(self, event: Event) -> bool:
        """Whether the traceback shows this tensor being allocated: a pattern in the innermost frame, and one in any frame."""
        lines, innermost = ((f":|{event.source_line}",), 1) if event.source_line else _frame_lines(event.frames)
        if not lines:
            return False
        return (not self.at or _any_line_matches(self.at, lines[-innermost:])) and (
            not self.within or _any_line_matches(self.within, lines)
        )

    def agrees(self, event: Event) -> bool:
        """Frame and phase fit; without a traceback the phase alone must."""
        if not event.frames and not event.source_line:
            return event.phase in self.phases and event.phase != "unknown"
        return self.phase_fits(event.phase) and self.frame_fits(event)


@lru_cache(maxsize=64)
def _frame_lines(frames: tuple[Frame, ...]) -> tuple[tuple[str, ...], int]:
    """The frames as the patterns read them, and how many of the last ones are the innermost call: torch's own functions make what the
    statement that called them names."""
    lines = tuple("{}:{}|{}".format(frame.file.replace("\\", "/"), frame.function, frame.statement) for frame in frames)
    own = next((number for number, line in enumerate(reversed(lines), 1) if not _OF_TORCH.match(line)), 1)
    return lines, own


def _any_line_matches(patterns: tuple[str, ...], lines: tuple[str, ...]) -> bool:
    return any(_frame_matches(patterns, line) for line in lines)


@lru_cache(maxsize=8192)
def _frame_matches(patterns: tuple[str, ...], line: str) -> bool:
    """Whether a frame matches one of the patterns; cached, because the same frames of libraries recur."""
    return any(finds(pattern, line) for pattern in patterns)


def _expand_widths(formulas: list[str]) -> tuple[str, ...]:
    """The formulas with `e*` written out for each element width: all with the first width, then all with the next."""
    spellings = [[width + symbols[1:] if symbols.startswith("e*") else symbols for symbols in formulas] for width in WIDTHS]
    return tuple(dict.fromkeys(symbols for spelling in spellings for symbols in spelling))


@cache
def printed_tensors() -> tuple[Tensor, ...]:
    """The entries of tensors whose shape or size the log prints."""
    return tuple(tensor for tensor in every_tensor() if tensor.printed or tensor.equals or tensor.says)


@cache
def tensors() -> tuple[Tensor, ...]:
    """The entries of tensors that are known by their formula or their frames."""
    return tuple(tensor for tensor in every_tensor() if not (tensor.printed or tensor.equals or tensor.says))


@cache
def every_tensor() -> tuple[Tensor, ...]:
    return tuple(
        Tensor(
            entry["key"],
            entry["group"],
            _expand_widths(entry.get("bytes", [])),
            tuple(entry.get("phases", ())),
            tuple(entry.get("at", ())),
            tuple(entry.get("within", ())),
            tuple(entry.get("when", ())),
            entry.get("solve", ""),
            entry.get("multiple", 1),
            bool(entry.get("at_least", False)),
            entry.get("follows", ""),
            tuple(conditions(entry.get("only")).items()),
            tuple((letter, span.get("of", ""), _tried_values(span)) for letter, span in entry.get("over", {}).items()),
            tuple(entry.get("avoided", ())),
            entry.get("lowered", {}),
            bool(entry.get("framed", False)),
            bool(entry.get("kept", False)),
            tuple(entry.get("printed", ())),
            tuple(entry.get("says", ())),
            tuple(entry.get("equals", ())),
            entry.get("memory", "card"),
        )
        for kind in KINDS
        for entry in rule_files.table("tensors")[kind]
    )


def _tried_values(span: Mapping[str, Any]) -> tuple[int, ...]:
    """The values from `start` to `to` that a letter is tried with: every whole number, or each twice the last."""
    start, to = span.get("start", 1), span["to"]
    return tuple(start << step for step in range((to // start).bit_length())) if span.get("doubling") else tuple(range(start, to + 1))


def _is_stated(job: Setup, knob: str) -> bool:
    """Whether a setting or the log says so; a default does not."""
    fact = job.book.fact(knob)
    return fact is not None and fact.origin != "default"


def _is_fused_projection(job: Setup, fusion: str) -> bool:
    """Whether linears that read the same input are one matrix."""
    family = job.model.family if job.model else ""
    own = job.model is not None and (job.model.fused_qkv if fusion == "qkv" else job.model.fused_gate_up)
    return own or family in table()["in_one"][fusion] or job.traits.fused_projections


#: The conditions of `when`. Unknown attention may be eager.
CONDITIONS: dict[str, Callable[[Setup], bool]] = {
    "engine": lambda job: job.role.name == "engine",
    "outside_engine": lambda job: job.role.name != "engine",
    "pairs": lambda job: job.stage in table()["pairs"],
    "rollouts": lambda job: job.stage in table()["rollouts"],
    "head": lambda job: not job.role.headless,
    "lora": lambda job: job.trainable.lora,
    "trained_vocabulary": lambda job: not job.trainable.lora or job.trainable.saved > 0,
    "full": lambda job: not job.trainable.lora,
    "zero": lambda job: job.sharding.zero,
    "zero12": lambda job: job.sharding.scheme in ("zero1", "zero2"),
    "zero3": lambda job: job.sharding.scheme == "zero3",
    "fsdp": lambda job: job.sharding.scheme in ("fsdp", "fsdp_grad"),
    "eager": lambda job: job.attention == "eager" or not _is_stated(job, "model.attention"),
    "fused": lambda job: job.attention != "eager",
    "experts": lambda job: job.model is not None and job.model.experts is not None,
    "no_decoder": lambda job: job.model is None,
    "vision": lambda job: job.model is not None and job.model.vision is not None,
    "latent": lambda job: job.model is not None and job.model.latent is not None,
    "ddp": lambda job: job.sharding.scheme == "ddp",
    "context": lambda job: job.sharding.context > 1,
    "fused_qkv": lambda job: _is_fused_projection(job, "qkv"),
    "gate_up": lambda job: _is_fused_projection(job, "gate_up") and job.model is not None and job.model.gated,
    "quantized": lambda job: job.book.word("model.quantization") not in (None, "none"),
    "may_be_quantized": lambda job: not _is_stated(job, "model.quantization") or job.book.word("model.quantization") != "none",
}


#: What a run that learns nothing has not.
_LEARNED = ("gradients", "optimizer_states")

#: What `only` may narrow down, and how a run says it.
_SAID: dict[str, Callable[[Setup], str | None]] = {
    "framework": lambda job: job.framework or None,
    "stage": lambda job: job.book.word("train.stage"),
    "family": lambda job: job.model.family if job.model else None,
    "optimizer": lambda job: job.book.word("train.optimizer"),
    "engine": lambda job: job.book.word("rollout.engine"),
}


def is_possible(tensor: Tensor, job: Setup, event: Event) -> bool:
    """Whether this run may have such a tensor. An unknown release excludes nothing; other conditions that nobody states need the
    traceback."""
    engine, tower = job.role.name == "engine", tensor.group == "mm_inputs"
    if (tensor.group == "logits" and job.role.headless) or ("engine" in tensor.when and not engine):
        return False
    learned = tensor.group in _LEARNED or tensor.follows == "gradient"
    if learned and tensor.bytes and not _may_learn(job, event):
        return False
    if engine and tensor.bytes and not tower and "engine" not in tensor.when:
        return False  # engines encode images as trainers do; what a frame alone tells holds for any program
    if tensor.framed and not tensor.frame_fits(event):
        return False
    if job.book.word("log.doing") == "encode_images" and not engine and not tower:
        return False  # a tower has patches, and neither tokens nor a vocabulary
    return all(CONDITIONS[name](job) for name in tensor.when) and all(
        _is_allowed(tensor, name, words, job, event) for name, words in tensor.only
    )


def _may_learn(job: Setup, event: Event) -> bool:
    """Whether the run learns, or nothing says that it does not and something speaks of it: every run has weights."""
    enabled = job.book.switch("train.enabled")
    if enabled is None:
        return event.phase in ("backward", "optimizer_step") or "train.framework" in job.book or "train.stage" in job.book
    return enabled


def _is_allowed(tensor: Tensor, name: str, words: tuple[str, ...], job: Setup, event: Event) -> bool:
    named = name in _SAID
    fits = is_one_of(_SAID[name](job) if named else job.book.version(f"version.{name}"), words)
    return fits if fits is not None else not named or tensor.frame_fits(event)
