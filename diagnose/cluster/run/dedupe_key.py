"""The key that jobs have in common which one diagnosis answers: what their diagnosis depends on, and nothing else.

Where and when a thing was printed, by which process and on which host, how often others complained after a failure, and what a run is
called are no part of it; of a day only what rules ask of it is. All else is, as it was read: figures, ranks, steps, frames with their
lines, configs byte for byte.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import cache, lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

from diagnose.adapters.job.named_files import base
from diagnose.catalogue import Model
from diagnose.decide import rule_loader as judge
from diagnose.decide.comparison import holds
from diagnose.parse.model.event import Event, Frame
from diagnose.parse.text.lazy_re import later
from diagnose.plan.rules import remedy_rules as plan
from diagnose.record import fields

if TYPE_CHECKING:
    from diagnose.adapters.formats.settings import ConfigSource
    from diagnose.decide.expression import Comparison
    from diagnose.facts import Fact, Input, Notice
    from diagnose.parse.model.reading import Reading

#: What an event is for its diagnosis: all but where and by which process it was printed.
_FIELDS = tuple(each.name for each in fields(Event) if each.name not in ("pid", "host", "evidence", "other_processes", "members", "frames"))

#: Options and keys that name a run and the places it writes to, a port or a host. No knob reads them, and no plan turns them.
_NAMING = (
    "output_dir|output_path|logging_dir|log_dir|save_dir|save_path|save_steps_dir|run_name|experiment_name|exp_name|trial_name|job_name"
    "|wandb_run_name|wandb_name|wandb_run_id|wandb_id|tensorboard_dir|tensorboard_path|cache_dir|tmp_dir|master_addr|master_port"
    "|main_process_ip|main_process_port|rdzv_id|rdzv_endpoint|node_rank|machine_rank|timestamp"
).replace("_", "[_-]")
_NAMED = later(rf"""(?<![\w.-])((?:--)?["']?(?:{_NAMING})["']?)(\s*[:=]\s*|\s+)("[^"\n]*"|'[^'\n]*'|[^\s,;)}}\]]+)""")
_DAY = "log.day"
_OWNER = later(r"(?<=/)(home|Users|users)/[^/]+")
_SCRIPT = later(r"(?<!\S)[^\s=]*/[\w.-]+\.py(?!\S)")
_PASSING = later(r"(?:[0-9a-fA-F]{8,}|\d{4,})(?:[-_.]\d+)*")
_PROCESS = later(r"\b(pid|PID|[Pp]rocess)([ =:]{1,2})\d+")


def same(reading: Reading, configs: Iterable[ConfigSource], basis: str = "", *, own_rules: bool = False) -> str:
    """Equal for jobs that one diagnosis answers. `basis` stands for what every job is diagnosed with: options, rules, the tool;
    `own_rules`: rules of the user's are among them, which may name any day."""
    names = tuple(one.name for one in reading.inputs)
    told = (
        basis,
        [_fact(fact, own_rules) for fact in reading.facts],
        [_event(event) for event in reading.events],
        [_SCRIPT.sub(lambda path: _place(path[0]), _unnamed(command.text)) for command in reading.commands],
        [(dump.form, dump.framework, _unnamed(dump.text), dump.effective) for dump in reading.dumps],
        [_notice(notice, names) for notice in reading.notices],
        [_input(one) for one in reading.inputs],
        reading.since,
        [_config(config) for config in configs],
    )
    return blake2b(repr(told).encode(errors="surrogatepass"), digest_size=16).hexdigest()


def _fact(fact: Fact, own_rules: bool) -> tuple[object, ...]:
    value = fact.value
    if fact.name == _DAY and not own_rules:
        return fact.name, tuple(holds(line, lambda _: value) for line in _of_days()), fact.origin
    return fact.name, _model(value) if isinstance(value, Model) else value, fact.origin, fact.refines


@cache
def _of_days() -> tuple[Comparison, ...]:
    """What rules ask of the day of a failure."""
    lines = [line for rule in judge.rules(trial=True)[0] for line in rule.lines]
    for remedy in plan.rules(trial=True):
        lines += [*remedy.where, *(line for unless in (*remedy.not_when, *remedy.caveats) for line in unless.all)]
    return tuple(line for line in lines if set(line.names) == {_DAY})


@lru_cache(maxsize=256)
def _model(shape: Model) -> str:
    """A model has many dimensions, and the same one is trained in many jobs."""
    return repr(shape)


def _event(event: Event) -> tuple[object, ...]:
    if event.status == "none":  # what follows from a failure: whoever else noticed, and how often, says nothing of it
        return event.family, event.status, event.exception, event.attempt, event.consequence_of
    values = [getattr(event, name) for name in _FIELDS]
    values[_FIELDS.index("exception")] = _PROCESS.sub(r"\1\2#", event.exception)
    others = [(other.in_use, other.own) for other in event.other_processes]
    return *values, _frames(event.frames), others, [_event(member) for member in event.members]


@lru_cache(maxsize=1024)
def _frames(frames: tuple[Frame, ...]) -> tuple[Hashable, ...]:
    return tuple((_place(frame.file), frame.line, frame.function, frame.statement) for frame in frames)


def _place(file: str) -> str:
    """A file without its owner, and without the numbers that a run or a session has in the names of its folders."""
    folders, slash, last = file.replace("\\", "/").rpartition("/")
    kept = _PASSING.sub("#", _OWNER.sub(r"\1/~", folders))
    return f"{kept}{slash}{last}" if slash else file


def _unnamed(text: str) -> str:
    """Settings without what names the run; as they are where one value may be made of another."""
    return text if "$" in text else _NAMED.sub(r"\1\2#", text)


def _notice(notice: Notice, names: Sequence[str]) -> tuple[str, ...]:
    message = notice.message.en
    for number, name in enumerate(names):
        message = message.replace(name, f"<{number}>") if name else message
    return notice.level, notice.code, message


def _input(one: Input) -> tuple[object, ...]:
    return one.kind, one.encoding, one.notes


def _config(config: ConfigSource) -> tuple[object, ...]:
    """A config with the name that it has in its own folder; of text what names the run is left out."""
    try:
        data: str | bytes = _unnamed(config.data.decode())
    except UnicodeDecodeError:
        data = config.data
    return base(config.called or config.name), data, config.forced_kind
