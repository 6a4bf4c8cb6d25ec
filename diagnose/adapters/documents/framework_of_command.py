"""Identifies the programs that commands start: a trainer, an inference server, or neither."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from diagnose import rule_files
from diagnose.adapters.formats.config_value import YES, Places
from diagnose.adapters.formats.settings import Form
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.config_kinds import programs_of_options, trainer_of_overrides
from diagnose.adapters.schema.table_types import Table
from diagnose.facts import Origin, Witness
from diagnose.records import NamedTuple

if TYPE_CHECKING:
    from diagnose.adapters.launch.launch_command import Launch


class StartedProgram(NamedTuple):
    """A launch and the table of the program that it starts (None: an unknown program)."""

    launch: Launch
    table: Table | None
    place: Places
    name: str
    text: str
    form: Form
    origin: Origin = "config"
    witness: Witness | None = None
    runs: str = ""  # the framework of the script that it starts, if the script is among the configs

    @property
    def is_plain(self) -> bool:
        """Whether nearly all options are the framework's, so that its defaults hold; a script of the user's has its own, and
        of options without a command others may be missing."""
        if self.launch.launcher == "list":
            return False
        if self.table is None or any(word in self.launch.program for word in self.table.detect.get("commands", ())):
            return True
        known_flags = sum(flag.name in self.table.known for flag in self.launch.flags)
        return 4 * known_flags >= 3 * len(self.launch.flags)

    @property
    def is_server(self) -> bool:
        return self.table is not None and self.table.serves

    @property
    def engine(self) -> str:
        """The engine of language models that it starts (Ollama's is llama.cpp); empty for other programs, such as those that draw."""
        keys = self.table.of("rollout.engine") if self.table is not None and self.table.serves else ()
        return next((key.default for key in keys if key.default), "")

    @property
    def trains(self) -> bool:
        return not self.is_server and (self.table is not None or bool(self.launch.launcher) or self.launch.program.endswith(".py"))


def identify_programs(
    launches: Iterable[Launch],
    text: str,
    name: str,
    form: Form,
    hint: str | None,
    origin: Origin = "config",
    witness: Witness | None = None,
) -> list[StartedProgram]:
    """The programs that the launches of one text start. `hint`: the framework named by the log."""
    place = Places(text)
    return [StartedProgram(launch, table_of(launch, hint), place, name, text, form, origin, witness) for launch in launches]


def table_of(launch: Launch, hint: str | None) -> Table | None:
    """The framework that a command starts: by its program, else by its options; None if unknown."""
    if launch.orphan or not (launch.program.strip() or launch.launcher == "list"):
        return None
    if next(iter(launch.program.split()), "") in rule_files.table("programs")["others"] and launch.launcher != "ray":
        return None
    flags = {flag.name for flag in launch.flags}
    for engine in framework_tables.engines():
        if any(word in launch.program for word in framework_tables.signs(engine).get("commands", ())):
            return framework_tables.table(engine)
        if launch.launcher == "list" and any(flags.issuperset(keys) for keys in framework_tables.signs(engine).get("keys", ())):
            return framework_tables.table(engine)
    if (called := _by_program(launch, flags)) is not None:
        return framework_tables.table(called)
    if not launch.launcher and not launch.program.endswith((".py", ".sh")):
        return None
    script = launch.program.rpartition("/")[2]
    for (
        trainer
    ) in framework_tables.trainers():  # a script of the framework's own that others call theirs too, by the variables that it reads
        if any(name in launch.env for name in framework_tables.signs(trainer).get("scripts", {}).get(script, ())):
            return framework_tables.table(trainer)
    found = next(programs_of_options(flags), None) or (trainer_of_overrides(flags) if launch.launcher == "list" else None)
    return _hinted(framework_tables.table(found), hint) if found else None


def _by_program(launch: Launch, flags: set[str]) -> str | None:
    """The framework with a program of this name, unless the options are rather another framework's: users also name a script
    run_sft.py."""
    named = _named_in(launch.program)
    for trainer in framework_tables.trainers() if named or launch.env else ():
        if trainer in named or any(word in launch.program for word in _switched(framework_tables.signs(trainer), launch)):
            others = [_known_of(other, flags) for other in programs_of_options(flags) if other != trainer]
            known = _known_of(trainer, flags)
            if not others or (2 * known >= len(flags) and known >= max(others)):
                return trainer
    return None


@lru_cache(maxsize=4096)
def _named_in(program: str) -> frozenset[str]:
    """The frameworks of which a command stands in this text. (Kept: a script may start one program a thousand times.)"""
    trainers = framework_tables.trainers()
    return frozenset(name for name in trainers if any(word in program for word in framework_tables.signs(name).get("commands", ())))


def _known_of(framework: str, flags: set[str]) -> int:
    """How many of the options the framework knows."""
    return sum(flag in framework_tables.known(framework) for flag in flags)


def _switched(signs: Mapping[str, Any], launch: Launch) -> Iterator[str]:
    """Commands that belong to this framework only while an environment variable is on."""
    for variable, commands in signs.get("switched", {}).items():
        word = launch.env.get(variable)
        if word is not None and word.text.strip("\"'").lower() in YES:
            yield from commands


def _hinted(tab: Table, hint: str | None) -> Table:
    """Replace the general trainer by the one that the log names, if that one takes the same options."""
    if hint in framework_tables.names() and tab.role == "general":
        extension = framework_tables.table(hint or "")
        if extension.trainer and "per_device_train_batch_size" in extension.known:
            return extension
    return tab
