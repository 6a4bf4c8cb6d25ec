"""The key under which jobs share one diagnosis: a hash of everything that the diagnosis depends on.

It leaves out the place, time, process and host of lines, the number of processes that report a failure later, and names of runs; of the
date only the results of rules that compare it count. Everything else is hashed as read: sizes, ranks, steps, frames with line numbers,
configs byte for byte.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import fields
from functools import cache, lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

from diagnose.adapters.job.named_files import base_name
from diagnose.catalogue import Model
from diagnose.decide import rule_loader
from diagnose.decide.comparison import holds
from diagnose.parse.model.event import Event, Frame
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.plan.remedies import remedy_rules

if TYPE_CHECKING:
    from diagnose.adapters.formats.settings import ConfigSource
    from diagnose.decide.expression import Comparison
    from diagnose.facts import Fact, Input, Notice
    from diagnose.parse.model.reading import Reading

#: The fields of an event that count as they are.
_EVENT_FIELDS = tuple(
    field.name for field in fields(Event) if field.name not in ("pid", "host", "evidence", "other_processes", "members", "frames")
)

#: Options and keys that name a run, the places it writes to, a port or a host: no knob reads them, and no remedy edits them.
_RUN_NAME_KEYS = (
    "output_dir|output_path|logging_dir|log_dir|save_dir|save_path|save_steps_dir|run_name|experiment_name|exp_name|trial_name|job_name"
    "|wandb_run_name|wandb_name|wandb_run_id|wandb_id|tensorboard_dir|tensorboard_path|cache_dir|tmp_dir|master_addr|master_port"
    "|main_process_ip|main_process_port|rdzv_id|rdzv_endpoint|node_rank|machine_rank|timestamp"
).replace("_", "[_-]")
_RUN_NAME = lazy_compile(rf"""(?<![\w.-])((?:--)?["']?(?:{_RUN_NAME_KEYS})["']?)(\s*[:=]\s*|\s+)("[^"\n]*"|'[^'\n]*'|[^\s,;)}}\]]+)""")
_DAY = "log.day"
_HOME_OWNER = lazy_compile(r"(?<=/)(home|Users|users)/[^/]+")
_SCRIPT = lazy_compile(r"(?<!\S)[^\s=]*/[\w.-]+\.py(?!\S)")
_RUN_NUMBER = lazy_compile(r"(?:[0-9a-fA-F]{8,}|\d{4,})(?:[-_.]\d+)*")
_PROCESS_ID = lazy_compile(r"\b(pid|PID|[Pp]rocess)([ =:]{1,2})\d+")


def diagnosis_key(reading: Reading, configs: Iterable[ConfigSource], basis: str = "", *, own_rules: bool = False) -> str:
    """The key, equal for jobs with the same diagnosis. `basis`: hash of what all jobs share (options, rules, version); `own_rules`: user
    rules are in use, which may compare any date."""
    names = tuple(source.name for source in reading.inputs)
    values = (
        basis,
        [_fact_key(fact, own_rules) for fact in reading.facts],
        [_event_key(event) for event in reading.events],
        [_SCRIPT.sub(lambda match: _stable_path(match[0]), _mask_run_names(command.text)) for command in reading.commands],
        [(dump.form, dump.framework, _mask_run_names(dump.text), dump.effective) for dump in reading.dumps],
        [_notice_key(notice, names) for notice in reading.notices],
        [_input_key(source) for source in reading.inputs],
        reading.since,
        [_config_key(config) for config in configs],
    )
    return blake2b(repr(values).encode(errors="surrogatepass"), digest_size=16).hexdigest()


def _fact_key(fact: Fact, own_rules: bool) -> tuple[object, ...]:
    value = fact.value
    if fact.name == _DAY and not own_rules:
        return fact.name, tuple(holds(comparison, lambda _: value) for comparison in _day_comparisons()), fact.origin
    return fact.name, _model_key(value) if isinstance(value, Model) else value, fact.origin, fact.refines


@cache
def _day_comparisons() -> tuple[Comparison, ...]:
    """The comparisons with the date of a failure in the rules."""
    lines = [line for rule in rule_loader.rules(trial=True)[0] for line in rule.lines]
    for remedy in remedy_rules.rules(trial=True):
        lines += [*remedy.where, *(line for unless in (*remedy.not_when, *remedy.caveats) for line in unless.all)]
    return tuple(line for line in lines if set(line.names) == {_DAY})


@lru_cache(maxsize=256)
def _model_key(model: Model) -> str:
    """Cached, because a model has many dimensions and many jobs train the same one."""
    return repr(model)


def _event_key(event: Event) -> tuple[object, ...]:
    if event.status == "none":  # a consequence of a failure: who else noticed it, and how often, does not matter
        return event.family, event.status, event.exception, event.attempt, event.consequence_of
    values = [getattr(event, name) for name in _EVENT_FIELDS]
    values[_EVENT_FIELDS.index("exception")] = _PROCESS_ID.sub(r"\1\2#", event.exception)
    processes = [(process.in_use, process.own) for process in event.other_processes]
    return *values, _frames_key(event.frames), processes, [_event_key(member) for member in event.members]


@lru_cache(maxsize=1024)
def _frames_key(frames: tuple[Frame, ...]) -> tuple[Hashable, ...]:
    return tuple((_stable_path(frame.file), frame.line, frame.function, frame.statement) for frame in frames)


def _stable_path(file: str) -> str:
    """A path without the home directory's owner, and without run and session numbers in folder names."""
    folders, slash, name = file.replace("\\", "/").rpartition("/")
    stable = _RUN_NUMBER.sub("#", _HOME_OWNER.sub(r"\1/~", folders))
    return f"{stable}{slash}{name}" if slash else file


def _mask_run_names(text: str) -> str:
    """Settings without the values that name the run; unchanged if a value may refer to another ($)."""
    return text if "$" in text else _RUN_NAME.sub(r"\1\2#", text)


def _notice_key(notice: Notice, names: Sequence[str]) -> tuple[str, ...]:
    message = notice.message.en
    for number, name in enumerate(names):
        message = message.replace(name, f"<{number}>") if name else message
    return notice.level, notice.code, message


def _input_key(source: Input) -> tuple[object, ...]:
    return source.kind, source.encoding, source.notes


def _config_key(config: ConfigSource) -> tuple[object, ...]:
    """A config by base name and text, without the values that name the run."""
    try:
        data: str | bytes = _mask_run_names(config.data.decode())
    except UnicodeDecodeError:
        data = config.data
    return base_name(config.called or config.name), data, config.forced_kind
