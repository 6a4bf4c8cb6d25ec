"""The command line: one function per command, whose parameters typer turns into options; implementations are imported inside."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeAlias, TypeVar

import typer

from diagnose.surfaces.cli import usage
from diagnose.surfaces.terminal.console import guarded, help_text, language, say

FORMATS, LANGUAGES = ("text", "json", "markdown", "html", "sarif"), ("en", "zh")

#: What a shell may complete a beginning to; None: files.
Complete: TypeAlias = Callable[[str], list[str]] | None

Function = TypeVar("Function", bound=Callable[..., object])


def cards(begun: str) -> list[str]:
    """Completion: names of cards."""
    from diagnose.catalogue.cards import card_names

    return [name for name in card_names() if name.startswith(begun)]


def turnable(begun: str) -> list[str]:
    """Completion: knobs that can be turned, with the sign behind which their value stands."""
    from diagnose.rule_files import table

    return [f"{row['knob']}=" for row in table("turned_knobs") if row["knob"].startswith(begun)]


def settable(begun: str) -> list[str]:
    """Completion: settings and facts that can be stated, with the sign behind which their value stands."""
    from diagnose.facts import names

    return [f"{name}=" for name in names() if name.startswith(begun)]


def known_rules(begun: str) -> list[str]:
    """Completion: ids of rules, names of causes and remedies."""
    from diagnose.manual import rule_index

    return sorted(name for name in rule_index.load_index([]).names() if name.startswith(begun))


def remedies(begun: str) -> list[str]:
    """Completion: words of remedies."""
    from diagnose import notebook

    return [name for name in notebook.remedies() if name.startswith(begun)]


def groupings(begun: str) -> list[str]:
    """Completion: what failures can be grouped by."""
    from diagnose.cluster.report.summary_types import BY

    return [name for name in BY if name.startswith(begun)]


def _argument(name: str, metavar: str, complete: Complete = None) -> typer.models.ArgumentInfo:
    info: typer.models.ArgumentInfo = typer.Argument(help=help_text(name), metavar=metavar, show_default=False, autocompletion=complete)
    return info


def _option(name: str, *flags: str, metavar: str | None = None, complete: Complete = None, **more: Any) -> typer.models.OptionInfo:
    info: typer.models.OptionInfo = typer.Option(*flags, help=help_text(name), metavar=metavar, autocompletion=complete, **more)
    return info


def _number(name: str, flag: str, *flags: str, low: int | None = None, high: int | None = None) -> typer.models.OptionInfo:
    metavar = "N" if low is None else f"{low}..{high}"
    return _option(name, flag, *flags, metavar=metavar, parser=usage.number(flag, int, low, high))


def _word(name: str, flag: str, words: Sequence[str]) -> typer.models.OptionInfo:
    def begun(text: str) -> list[str]:
        return [word for word in words if word.startswith(text)]

    return _option(name, flag, metavar="|".join(words), complete=begun, parser=usage.one_of(flag, words))


Logs = Annotated[list[str] | None, _argument("log", "LOG")]
Files = Annotated[list[str] | None, _argument("config_file", "FILE")]
Paths = Annotated[list[str], _argument("jobs_path", "PATH")]
Folders = Annotated[list[str] | None, _argument("folders", "DIR")]
Good = Annotated[str, _argument("good_job", "GOOD")]
Bad = Annotated[str, _argument("bad_job", "BAD")]
Words = Annotated[list[str], _argument("what_if_words", "LOG|KNOB=VALUE...", turnable)]
Name = Annotated[str, _argument("rule_id", "ID", known_rules)]
Report = Annotated[str, _argument("report_id", "REPORT-ID")]
Remedies = Annotated[list[str], _argument("tried_remedies", "REMEDY...", remedies)]
Config = Annotated[list[str] | None, _option("config", "--config", metavar="[KIND=]FILE")]
Model = Annotated[str | None, _option("model", "--model", metavar="ID|FILE")]
Gpu = Annotated[str | None, _option("gpu", "--gpu", metavar="NAME", complete=cards)]
Gpus = Annotated[int | None, _number("gpus", "--gpus")]
Set = Annotated[list[str] | None, _option("set", "--set", metavar="NAME=VALUE", complete=settable)]
Form = Annotated[str, _word("format", "--format", FORMATS)]
CompareForm = Annotated[str, _word("format", "--format", ("text", "json"))]
WhatIfForm = Annotated[str, _word("format", "--format", ("text", "json", "html"))]
Lang = Annotated[str | None, _word("lang", "--lang", LANGUAGES)]
Top = Annotated[int, _number("top", "--top")]
Verbose = Annotated[bool, _option("verbose", "--verbose", "-v")]
All = Annotated[bool, _option("explain_all", "--explain-all")]
Budget = Annotated[bool, _option("explain_budget", "--explain-budget")]
Patch = Annotated[str | None, _option("patch", "--patch", metavar="FILE|-")]
Apply = Annotated[bool, _option("apply", "--apply")]
CheckWith = Annotated[str | None, _option("check_with", "--check-with", metavar="COMMAND")]
Rules = Annotated[list[str] | None, _option("rules_dir", "--rules", metavar="DIR")]
Redact = Annotated[bool | None, _option("redact", "--redact/--no-redact")]
Strict = Annotated[bool, _option("strict", "--strict")]
Snapshot = Annotated[str | None, _option("snapshot", "--snapshot", metavar="FILE")]
Trial = Annotated[bool, _option("trial", "--trial")]
Jobs = Annotated[int | None, _number("jobs", "--jobs", "-j")]
Output = Annotated[str, _option("docs_folder", "--output", metavar="DIR")]
Export = Annotated[str | None, _option("export", "--export", metavar="FILE|DIR")]
Store = Annotated[str | None, _option("store", "--store", metavar="FILE")]
Out = Annotated[str | None, _option("out", "--out", metavar="FILE")]
PageOut = Annotated[str | None, _option("page_out", "--out", metavar="FILE")]
Engine = Annotated[str, _word("engine", "--engine", ("local", "ray"))]
RayAddress = Annotated[str | None, _option("ray_address", "--ray-address", metavar="ADDRESS")]
Watch = Annotated[bool, _option("watch", "--watch")]
Notify = Annotated[str | None, _option("notify", "--notify", metavar="URL")]
Since = Annotated[str | None, _option("since", "--since", metavar="TIME")]
GroupBy = Annotated[str, _option("group_by", "--group-by", metavar="WHAT", complete=groupings)]
FailOn = Annotated[list[str] | None, _option("fail_on", "--fail-on", metavar="CONDITION")]
Pattern = Annotated[str | None, _option("job_pattern", "--job-pattern", metavar="PATTERN")]
Host = Annotated[str, _option("host", "--host", metavar="NAME")]
Port = Annotated[int, _number("port", "--port", low=0, high=65535)]
Workers = Annotated[int | None, _number("workers", "--workers", low=1, high=256)]
Size = Annotated[int, _number("max_mib", "--max-mib", low=1, high=1024)]
Seconds = Annotated[float, _option("timeout", "--timeout", metavar="SECONDS", parser=usage.number("--timeout", float, 0.1, 3600))]
Queue = Annotated[int, _number("queue", "--queue", low=1, high=100_000)]
PerClient = Annotated[int, _number("per_client", "--per-client", low=1, high=100_000)]
Masked = Annotated[bool, _option("masked", "--redact/--no-redact")]
Command = Annotated[list[str], _argument("run_command", "CMD...")]
Log = Annotated[str | None, _option("run_log", "--log", metavar="FILE")]
Http = Annotated[bool, _option("http", "--http")]
Opened = Annotated[list[str] | None, _option("opened_folder", "--folder", metavar="DIR")]
Hooks = Annotated[bool, _option("webhooks", "--http")]
Socket = Annotated[bool, _option("long_connection", "--socket")]
Attached = Annotated[int, _number("bot_mib", "--max-mib", low=1, high=256)]

#: The commands by name, in the order of the help, each an application of its own: typer reads the parameters of the one that is asked for.
COMMANDS: dict[str, typer.Typer] = {}


class Root(usage.Commands):
    """The command `oomdoctor` itself: `oomdoctor train.log` and `cat log | oomdoctor` mean `explain`."""

    parts = COMMANDS

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:  # a shell that completes
            if not args and usage.is_piped():
                args = ["explain", "-"]
            elif args and args[0] not in self.list_commands(ctx) and (args[0] == "-" or Path(args[0]).exists()):
                args = ["explain", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=Root, help=help_text("app"), no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


def command(name: str, **settings: Any) -> Callable[[Function], Function]:
    """Decorator: registers a function as a command."""
    COMMANDS[name] = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    return COMMANDS[name].command(name, cls=usage.Command, help=help_text(name), **settings)


def group(name: str) -> Callable[[str], Callable[[Function], Function]]:
    """Registers a group of commands; returns a decorator for its commands."""
    part = COMMANDS[name] = typer.Typer(
        name=name,
        cls=usage.Commands,
        help=help_text(name),
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    return lambda inner: part.command(inner, cls=usage.Command, help=help_text(f"{name}_{inner}"))


@command("explain")
def explain(
    log: Logs = None, configs: Config = None, model: Model = None, gpu: Gpu = None, gpus: Gpus = None, set: Set = None,
    format: Form = "text", lang: Lang = None, top: Top = 3, verbose: Verbose = False, every_rule: All = False,
    budget: Budget = False, patch: Patch = None, apply: Apply = False, check_with: CheckWith = None, rules: Rules = None,
    redact: Redact = None, strict: Strict = False, trial: Trial = False, snapshot: Snapshot = None,
) -> None:  # fmt: skip
    from diagnose.surfaces.terminal import answer_command, answer_options

    options = plain(locals())
    _end(lang, lambda: answer_command.explain(log or (), *answer_options.split_options(options)))


@command("check")
def check(
    file: Files = None, configs: Config = None, model: Model = None, gpu: Gpu = None, gpus: Gpus = None, set: Set = None,
    format: Form = "text", lang: Lang = None, top: Top = 3, verbose: Verbose = False, every_rule: All = False,
    budget: Budget = False, patch: Patch = None, apply: Apply = False, check_with: CheckWith = None, rules: Rules = None,
    redact: Redact = None, strict: Strict = False,
) -> None:  # fmt: skip
    from diagnose.surfaces.terminal import answer_command, answer_options

    options = plain(locals())
    _end(lang, lambda: answer_command.check(file or (), *answer_options.split_options(options)))


@command("facts")
def facts(
    log: Logs = None, configs: Config = None, model: Model = None, gpu: Gpu = None, gpus: Gpus = None, set: Set = None,
    format: Form = "text", lang: Lang = None, verbose: Verbose = False, redact: Redact = None, strict: Strict = False,
) -> None:  # fmt: skip
    from diagnose.surfaces.terminal import answer_command, answer_options

    options = plain(locals())
    _end(lang, lambda: answer_command.facts(log or (), *answer_options.split_options(options)))


@command("compare")
def compare(
    good: Good, bad: Bad, configs: Config = None, model: Model = None, gpu: Gpu = None, gpus: Gpus = None, set: Set = None,
    format: CompareForm = "text", lang: Lang = None, rules: Rules = None, redact: Redact = None, strict: Strict = False,
) -> None:  # fmt: skip
    from diagnose.surfaces.terminal import answer_options, compare_command

    options = plain({name: value for name, value in locals().items() if name not in ("good", "bad", "answer_options", "compare_command")})
    _end(lang, lambda: compare_command.compare(good, bad, *answer_options.split_options(options)))


@command("what-if")
def what_if(
    word: Words, configs: Config = None, model: Model = None, gpu: Gpu = None, gpus: Gpus = None, set: Set = None,
    format: WhatIfForm = "text", lang: Lang = None, rules: Rules = None, redact: Redact = None, strict: Strict = False,
) -> None:  # fmt: skip
    from diagnose.surfaces.terminal import answer_options
    from diagnose.surfaces.what_if import what_if_command

    options = plain({name: value for name, value in locals().items() if name not in ("word", "answer_options", "what_if_command")})
    _end(lang, lambda: what_if_command.what_if(word, *answer_options.split_options(options)))


@command("open")
def open_page(
    log: Logs = None, configs: Config = None, model: Model = None, gpu: Gpu = None, gpus: Gpus = None, set: Set = None,
    lang: Lang = None, rules: Rules = None, redact: Redact = None, strict: Strict = False, trial: Trial = False,
    snapshot: Snapshot = None, out: PageOut = None,
) -> None:  # fmt: skip
    from diagnose.surfaces.playground import open_command
    from diagnose.surfaces.terminal import answer_options

    options = plain(
        {**{name: value for name, value in locals().items() if name not in ("answer_options", "open_command")}, "format": "html"}
    )
    _end(lang, lambda: open_command.open_page(log or (), *answer_options.split_options(options), out=out))


@command("worked")
def worked(report: Report, remedy: Remedies, lang: Lang = None) -> None:
    from diagnose.surfaces.terminal.note_command import note

    _end(lang, lambda: note(report, remedy, "worked", language(lang)))


@command("failed")
def failed(report: Report, remedy: Remedies, lang: Lang = None) -> None:
    from diagnose.surfaces.terminal.note_command import note

    _end(lang, lambda: note(report, remedy, "failed", language(lang)))


@command("run", context_settings={"allow_interspersed_args": False})
def run(
    command: Command, log: Log = None, configs: Config = None, model: Model = None, gpu: Gpu = None, gpus: Gpus = None, set: Set = None,
    format: Form = "text", lang: Lang = None, top: Top = 3, verbose: Verbose = False, every_rule: All = False,
    budget: Budget = False, rules: Rules = None, redact: Redact = None, snapshot: Snapshot = None,
) -> None:  # fmt: skip
    options = plain({name: value for name, value in locals().items() if name != "command"})
    from diagnose.surfaces.run import run_command

    raise typer.Exit(run_command.run(command, options))


@command("triage")
def triage(
    path: Paths, configs: Config = None, model: Model = None, gpu: Gpu = None, gpus: Gpus = None, set: Set = None,
    format: Form = "text", lang: Lang = None, top: Top = 10, rules: Rules = None, redact: Redact = None, trial: Trial = False,
    jobs: Jobs = None, export: Export = None, store: Store = None, out: Out = None, engine: Engine = "local",
    ray_address: RayAddress = None, watch: Watch = False, notify: Notify = None, since: Since = None, group_by: GroupBy = "fingerprint",
    fail_on: FailOn = None, job_pattern: Pattern = None,
) -> None:  # fmt: skip
    options = plain(locals())
    from dataclasses import fields

    from diagnose import workers
    from diagnose.cluster import PRELOADED

    if engine == "local" and not (store and os.path.exists(store)):  # noqa: PTH110 - without a database every job is read
        workers.warm(PRELOADED)  # while the modules are loaded that find them
    from diagnose.surfaces.terminal import answer_options
    from diagnose.surfaces.terminal.triage_command import TriageOptions, triage

    how = TriageOptions(**{each.name: options[each.name] for each in fields(TriageOptions) if options[each.name] is not None})
    _end(lang, lambda: triage(path, *answer_options.split_options(options), how))


@command("serve")
def serve(
    host: Host = "127.0.0.1", port: Port = 8080, workers: Workers = None, max_mib: Size = 16, timeout: Seconds = 20.0,
    queue: Queue = 128, per_client: PerClient = 64, redact: Masked = True, lang: Lang = None,
) -> None:  # fmt: skip
    options = plain(locals())
    from diagnose.surfaces.server.serve_command import ServeOptions, serve

    _end(lang, lambda: serve(ServeOptions(**options)))


@command("mcp")
def mcp(
    http: Http = False, host: Host = "127.0.0.1", port: Port = 8081, timeout: Seconds = 60.0, redact: Masked = True, lang: Lang = None,
    folder: Opened = None,
) -> None:  # fmt: skip
    options = plain(locals())
    from diagnose.surfaces.server.mcp_server import McpOptions, serve_mcp

    folders = tuple(options.pop("folder") or ())
    _end(lang, lambda: serve_mcp(McpOptions(**options, folders=folders)))


@command("schema")
def schema() -> None:
    from diagnose.render.data.pydantic_report import schema

    _end(None, lambda: say(schema()))


rules_command = group("rules")


@rules_command("list")
def rules_list(folder: Rules = None, lang: Lang = None) -> None:
    from diagnose.surfaces.terminal.rules_command import listing

    _end(lang, lambda: listing(folder or (), language(lang)))


@rules_command("show")
def rules_show(name: Name, folder: Rules = None, lang: Lang = None) -> None:
    from diagnose.surfaces.terminal.rules_command import show

    _end(lang, lambda: show(name, folder or (), language(lang)))


@rules_command("check")
def rules_check(folder: Folders = None, rules: Rules = None, lang: Lang = None) -> None:
    from diagnose.surfaces.terminal.rules_command import check

    _end(lang, lambda: check([*(folder or ()), *(rules or ())], language(lang)))


@rules_command("docs")
def rules_docs(output: Output = "docs/generated", folder: Rules = None, lang: Lang = None) -> None:
    from diagnose.surfaces.terminal.rules_command import docs

    _end(lang, lambda: docs(output, folder or (), language(lang)))


bot_command = group("bot")


@bot_command("slack")
def bot_slack(
    http: Hooks = False, host: Host = "127.0.0.1", port: Port = 8082, workers: Workers = None, timeout: Seconds = 30.0,
    max_mib: Attached = 16, redact: Masked = True, lang: Lang = None,
) -> None:  # fmt: skip
    options = plain(locals())
    from diagnose.surfaces.bots.bot_command import BotOptions, bot

    _end(lang, lambda: bot(BotOptions("slack", **options)))


@bot_command("feishu")
def bot_feishu(
    socket: Socket = False, host: Host = "127.0.0.1", port: Port = 8082, workers: Workers = None, timeout: Seconds = 30.0,
    max_mib: Attached = 16, redact: Masked = True, lang: Lang = None,
) -> None:  # fmt: skip
    options = plain(locals())
    from diagnose.surfaces.bots.bot_command import BotOptions, bot

    socket = options.pop("socket")
    _end(lang, lambda: bot(BotOptions("feishu", http=not socket, **options)))


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, _option("version", "--version")] = False) -> None:
    if version:
        from diagnose.version import __version__

        _end(None, lambda: say(f"oomdoctor {__version__}"))


def plain(options: dict[str, Any]) -> dict[str, Any]:
    """Options as the commands expect them; the language defaults to the locale's."""
    return {**options, "lang": language(options.get("lang"))}


def _end(lang: str | None, work: Callable[[], int | None]) -> NoReturn:
    """Run a command and exit with its status."""
    raise typer.Exit(guarded(language(lang), work))
