"""Adapts typer: commands built on demand, values parsed without pydantic, and usage errors reported as one sentence with a suggestion."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from diagnose.errors import UserError
from diagnose.surfaces.terminal.console import guarded, language, trouble

Number = TypeVar("Number", int, float)


class Plain:
    """A command whose values are texts, or results of the options' parsers.

    Newer typer parses every value and default through pydantic, whose import takes a third of the time of a diagnosis. In older releases
    parameters have no `type_descriptor` and need no change.
    """

    def parse_args(self, ctx: object, args: list[str]) -> list[str]:
        for param in self.get_params(ctx):  # type: ignore[attr-defined]
            if hasattr(param, "type_descriptor"):
                param.process_value = partial(_read, param, type(param).process_value)
        return super().parse_args(ctx, args)  # type: ignore[misc,no-any-return]


def _read(param: Any, by_typer: Callable[[object, object, object], object], ctx: object, value: Any) -> object:
    """Parse a parameter's value without pydantic."""
    parser = param.type_descriptor.parameter_info.parser
    if (param.callback is not None and value is not None) or (param.required and param.value_is_missing(value)):
        return by_typer(param, ctx, value)  # the options of completion; what is missing, of which it complains
    if param.multiple or param.nargs != 1:
        return tuple(value or ())
    return parser(value) if parser is not None and value is not None else value


class Commands(Plain, TyperGroup):
    """A group that builds commands on demand and suggests a name for a misspelt one."""

    #: Commands by name, beside those that typer has built already.
    parts: ClassVar[Mapping[str, typer.Typer]] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        return [*self.parts, *(name for name in super().list_commands(ctx) if name not in self.parts)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in self.parts and cmd_name not in self.commands:
            self.commands[cmd_name] = typer.main.get_command(self.parts[cmd_name])
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in (names := self.list_commands(ctx)) and not ctx.resilient_parsing:  # a shell that completes is told nothing
            raise unknown("no_such_command", args[0], names, ctx.command_path)
        return super().resolve_command(ctx, args)


class Command(Plain, TyperCommand):
    """A command of a group."""


def number(flag: str, kind: type[Number], low: Number | None = None, high: Number | None = None) -> Callable[[str], Number]:
    """A parser for the value of a numeric option; it raises UserError for other texts and values out of bounds."""

    def read(text: str) -> Number:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is not None and (low is None or value >= low) and (high is None or value <= high):
            return value
        if low is None:
            raise trouble("takes_whole", flag=flag, text=repr(text))
        raise trouble("takes_between", flag=flag, low=low, high=high, text=repr(text))

    return read


def one_of(flag: str, words: Sequence[str]) -> Callable[[str], str]:
    """A parser for the value of an option with a fixed set of words; it raises UserError for others."""

    def read(text: str) -> str:
        if text not in words:
            near = nearest(text, words)
            raise trouble("takes_word", hint="did_you_mean" if near else "", flag=flag, words=", ".join(words), text=repr(text), near=near)
        return text

    return read


def answered(app: typer.Typer) -> int:
    """Run the command line; the exit status, 2 after a usage error."""
    return guarded(language(spoken(sys.argv[1:])), lambda: run(app))


def run(app: typer.Typer) -> int:
    """Run the command line. Raises UserError for a usage error."""
    try:
        return int(app(prog_name="oomdoctor", standalone_mode=False) or 0)
    except typer.Abort as error:
        raise KeyboardInterrupt from error
    except Exception as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error, file=sys.stderr)
            return 2
        if (said := user_error(error)) is None:
            raise
        raise said from error


def user_error(error: Exception) -> UserError | None:
    """The UserError for a usage error of typer; None for other exceptions. The classes are click's and are compared by name, because
    typer releases keep them in different modules."""
    context: Any = getattr(error, "ctx", None)
    command = context.command_path if context else "oomdoctor"
    name = str(getattr(error, "option_name", ""))
    match type(error).__name__:
        case "NoSuchOption":
            flags = [flag for each in context.command.params for flag in (*each.opts, *each.secondary_opts)]
            return unknown("no_such_option", name, [*flags, *context.help_option_names], command)
        case "MissingParameter":
            return trouble("missing", hint="see_help", name=error.param.metavar, command=command)  # type: ignore[attr-defined]
        case "BadOptionUsage":
            given = any(word.startswith(f"{name}=") for word in sys.argv)
            return trouble("takes_nothing" if given else "takes_something", name=name)
        case "UsageError":
            return trouble("too_many_words", hint="see_help", command=command)
    return None


def unknown(key: str, name: str, known: Iterable[str], command: str) -> UserError:
    """The error for an unknown name, with a suggestion."""
    near = nearest(name, known)
    return trouble(key, hint="did_you_mean" if near else "see_help", name=name, near=near, command=command)


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word most similar to a misspelt one; empty if none is. Leading dashes do not count towards similarity."""
    import difflib  # only a mistake needs it

    bare = {each.lstrip("-"): each for each in known}
    return bare[found[0]] if (found := difflib.get_close_matches(word.lstrip("-"), list(bare), 1)) else ""


def is_piped() -> bool:
    """Whether standard input is a pipe or a file, and no terminal or device."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):  # closed, or none of the system
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def spoken(words: Sequence[str]) -> str | None:
    """The language requested on a command line that cannot be parsed."""
    for word, following in pairwise([*words, ""]):
        asked = following if word == "--lang" else word.removeprefix("--lang=")
        if word.startswith("--lang") and asked in ("en", "zh"):
            return asked
    return None
