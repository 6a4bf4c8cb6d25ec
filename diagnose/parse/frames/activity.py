"""What the job was doing, finer than a phase, and its training method: from frames that occur in one activity only (rules/phases.yaml:
`doing`, `moves_model`, `torch`, `megatron`, `trainer`, `stage`)."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from diagnose import rule_files
from diagnose.parse.text import lazy_re

if TYPE_CHECKING:
    from collections.abc import Sequence

    from diagnose.parse.model.event import Frame

#: Files of transformers, and of vLLM and SGLang, that hold the code of one architecture.
_MODEL_CODE = lazy_re.lazy_compile(r"(?:^|/)modeling_(\w{1,60})\.py$|/(?:model_executor|srt)/models/(\w{1,60})\.py$")


def activity_of_frames(frames: Sequence[Frame]) -> str:
    """The activity (a word of the fact log.doing) of the innermost frame that shows one; "" where none does."""
    return _activities(tuple(frames), "doing")


def activity_of_source(line: str) -> str:
    """The activity that a line of source shows by itself, without its frame; "" where it shows none."""
    return _frame_activities("doing", "", "", line)


def all_activities(frames: Sequence[Frame]) -> list[str]:
    """All activities that the frames show, innermost first: one may run inside another."""
    activities = (_frame_activities("doing", frame.function.rsplit(".", 1)[-1], frame.file, frame.statement) for frame in reversed(frames))
    return list(dict.fromkeys(filter(None, activities)))


def moves_model(frames: Sequence[Frame]) -> bool:
    """Whether the trainer itself was moving the whole model to the card."""
    rule = rule_files.table("phases")["moves_model"]
    return any(
        lazy_re.matches_pattern(rule["caller"], outer.function) and lazy_re.matches_pattern(rule["function"], inner.function)
        for outer, inner in pairwise(frames)
    )


def asks_torch(exception: str, frames: Sequence[Frame]) -> bool | None:
    """Whether torch asked for the memory, by its code or its exception; False for the exception of another library, None for neither."""
    rule = rule_files.table("phases")["torch"]
    if any(lazy_re.matches_pattern(rule["file"], frame.file.replace("\\", "/")) for frame in frames):
        return True
    return lazy_re.matches_pattern(rule["exception"], exception) if exception else None


def runs_megatron(frames: Sequence[Frame]) -> bool:
    """Whether the model that failed is Megatron's."""
    rule = rule_files.table("phases")["megatron_layers"]
    return any(lazy_re.matches_pattern(rule["file"], frame.file.replace("\\", "/")) for frame in frames)


def stage_of_frames(frames: Sequence[Frame]) -> str:
    """The training method (dpo, grpo, ...) whose trainer the traceback runs through; "" without one."""
    return _activities(tuple(frames), "stage")


def trainer_of_frames(frames: Sequence[Frame]) -> str:
    """The framework whose code the traceback runs through; "" without one that is known."""
    return _owner_of_frames(frames, "trainer")


def engine_of_frames(frames: Sequence[Frame]) -> str:
    """The inference engine whose code the traceback runs through; "" without one that is known."""
    return _owner_of_frames(frames, "engine")


def architectures_of_frames(frames: Sequence[Frame]) -> list[str]:
    """The architectures whose code the traceback runs through, outermost first, by the files that libraries keep it in."""
    names = (match[1] or match[2] for frame in frames if (match := _MODEL_CODE.search(frame.file.replace("\\", "/"))))
    return list(dict.fromkeys(names))


def _owner_of_frames(frames: Sequence[Frame], table_name: str) -> str:
    files = [frame.file.replace("\\", "/") for frame in frames]
    rules = rule_files.table("phases")[table_name]
    return next((str(rule[table_name]) for rule in rules if any(lazy_re.matches_pattern(rule["file"], file) for file in files)), "")


@lru_cache(maxsize=1024)
def _activities(frames: tuple[Frame, ...], table_name: str) -> str:
    """Cached, because the same code fails in many jobs."""
    words = (_frame_activities(table_name, frame.function.rsplit(".", 1)[-1], frame.file, frame.statement) for frame in reversed(frames))
    return next(filter(None, words), "")


@lru_cache(maxsize=4096)
def _frame_activities(table_name: str, function: str, file: str, statement: str) -> str:
    """The activities that one frame shows; cached, because the same frames recur."""
    frame_parts = {"function": function, "file": file.replace("\\", "/"), "statement": statement}
    for rule in rule_files.table("phases")[table_name]:
        if all(lazy_re.matches_pattern(rule[part], text) for part, text in frame_parts.items() if part in rule):
            return str(rule[table_name])
    return ""
