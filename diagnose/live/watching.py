"""`watch` and `install_excepthook`: explain out-of-memory exceptions inside the job's process, and let them propagate."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ContextDecorator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from diagnose.errors import log_crash
from diagnose.live import process_memory, process_rank
from diagnose.live.trainer_state import STATE

if TYPE_CHECKING:
    from diagnose.diagnosis import Diagnosis
    from diagnose.inputs.caller_arguments import Material
    from diagnose.phrases import Lang

#: Exceptions followed from the one raised to its causes.
DEEPEST = 20

#: Attribute set on explained exceptions, so that each is explained once.
MARK = "_oomdoctor_explained"

#: Start of this process's watching: claims of other processes from before belong to earlier launches.
_SINCE = time.time()


class Watch:
    """Explains exceptions. `config`: one config or several, as a path or as text. `report`: called with the diagnosis; by default the
    answer is printed on standard error. Further options are those of `explain`."""

    def __init__(
        self,
        config: Material | Sequence[Material] = (),
        *,
        report: Callable[[Diagnosis], object] | None = None,
        lang: Lang | None = None,
        **options: Any,
    ) -> None:
        single = isinstance(config, (str, bytes, Path)) or hasattr(config, "read")
        given: list[Any] = [config] if single else list(config)  # type: ignore[arg-type]
        self.configs = [Path(each) if names_a_file(each) else each for each in given]
        self.report, self.lang, self.options = report, lang, options

    def handle(self, error: BaseException | None) -> None:
        """Explain an exception once if it is a memory error. Never raises."""
        try:
            if error is None or not is_memory_error(error) or getattr(error, MARK, False):
                return
            diagnosis = self.diagnose(error)
            mark_explained(error)
            if diagnosis.verdict.status not in ("oom", "suspected"):
                return
            if self.report is not None:
                self.report(diagnosis)
            else:
                self._print(diagnosis)
        except Exception as failure:  # a mistake of ours; the job goes on as if nothing was
            log_crash("explanation", failure)
            _print_stderr(f"oomdoctor: {type(failure).__name__}: {failure}"[:300])

    def diagnose(self, error: BaseException) -> Diagnosis:
        """Diagnose an exception together with the state of the process. Raises what `explain` raises."""
        # Here and below: the job that is watched loads the engine only once it has failed.
        from diagnose import notebook
        from diagnose.pipeline import explain
        from diagnose.scan.source import Source

        options = dict(self.options)
        world_size = process_memory.world_size()
        if world_size is not None and "gpus" not in options:
            options["gpus"] = world_size
        log = format_log(error)
        card = None if "total capacity" in log else process_memory.device_capacity()
        if card:
            options["set"] = {"hardware.capacity": f"{card / 2**30:.2f} GiB", **options.get("set", {})}
        snapshot = process_memory.recorded_history()
        if snapshot is not None:
            options.setdefault("snapshot", Source.text(snapshot, name="this process"))
        text = Source.text(log.encode(errors="replace"), name="exception")
        return explain(text, configs=[*self.configs, *STATE.configs()], notes=notebook.read(), **options)

    def _print(self, diagnosis: Diagnosis) -> None:
        """Print the answer on standard error: in full on one rank, one sentence on the others."""
        import shlex

        from diagnose.phrases import phrase
        from diagnose.render.formats import RENDERERS
        from diagnose.render.parts.strings import one_line
        from diagnose.render.parts.view import stream_view

        lang = self.lang or locale_language()
        view = stream_view(sys.stderr)._replace(options=False)
        answer = RENDERERS["text"](diagnosis, lang, view).rstrip()  # before the claim: a launcher may end this rank soon
        number = process_rank.rank(os.environ)
        folder = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - holds an empty file that says: answered
        if number is not None and not process_rank.first_to_answer(folder, _SINCE, os.environ):
            _print_stderr(f"oomdoctor: rank {number}: {one_line(diagnosis.verdict.headline.to(lang))}")
            return
        _print_stderr(f"{answer}\noomdoctor: {phrase('cli.watch_again', again=shlex.join(self._command())).to(lang)}")

    def _command(self) -> list[str]:
        """What takes the options that the answer names, once the output of this process is in a file."""
        files = [str(config) for config in self.configs if isinstance(config, Path)]
        return ["oomdoctor", "explain", "job.log", *(word for file in files for word in ("--config", file)), "--verbose"]


def names_a_file(config: object) -> bool:
    """Whether a string is the path of a file and not the text of a config."""
    return isinstance(config, str) and "\n" not in config and len(config) < 4096 and Path(config).is_file()


class watch(Watch, ContextDecorator):  # noqa: N801 - used like a function: with watch():
    """`with watch(config=...):` or `@watch()`: explain a memory error that leaves the block, and let it propagate."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.handle(error)


def install_excepthook(config: Material | Sequence[Material] = (), **options: Any) -> Callable[[], None]:
    """Explain a memory error that ends the process or a thread, after its traceback was printed. Takes the arguments of `watch`.

    Previously installed hooks still run. Returns a function that uninstalls this one.
    """
    import threading

    watcher = Watch(config, **options)
    previous_hook, previous_thread_hook = sys.excepthook, threading.excepthook
    is_active = True

    def exception_hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        previous_hook(kind, error, trace)
        if is_active:
            watcher.handle(error)

    def thread_hook(arguments: threading.ExceptHookArgs) -> None:
        previous_thread_hook(arguments)
        if is_active:
            watcher.handle(arguments.exc_value)

    def remove() -> None:
        nonlocal is_active
        is_active = False
        if sys.excepthook is exception_hook:
            sys.excepthook = previous_hook
        if threading.excepthook is thread_hook:
            threading.excepthook = previous_thread_hook

    sys.excepthook, threading.excepthook = exception_hook, thread_hook
    return remove


def exception_chain(error: BaseException) -> list[BaseException]:
    """An exception with its causes, contexts and group members, as its traceback shows them."""
    chain: list[BaseException] = []
    pending = [error]
    while pending and len(chain) < DEEPEST:
        current = pending.pop(0)
        if any(current is candidate for candidate in chain):
            continue
        chain.append(current)
        cause = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
        pending += [candidate for candidate in (cause, *getattr(current, "exceptions", ())) if isinstance(candidate, BaseException)]
    return chain


def is_memory_error(error: BaseException) -> bool:
    """Whether an exception may be a memory error, by its class (torch's by name) or by the words that logs are searched for."""
    if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit)):
        return False
    for link in exception_chain(error):
        if isinstance(link, MemoryError) or any(kind.__name__ == "OutOfMemoryError" for kind in type(link).__mro__):
            return True
        text = process_memory.try_call(lambda link=link: str(link))  # type: ignore[misc]
        if text and _mentions_memory(text):
            return True
    return False


def _mentions_memory(text: str) -> bool:
    from diagnose.scan.memory_words import literals

    return any(True for _ in literals().find(memoryview(text[:65536].encode(errors="replace"))))


def mark_explained(error: BaseException) -> None:
    """Mark an exception and its chain as explained."""
    for link in exception_chain(error):
        process_memory.try_call(lambda link=link: setattr(link, MARK, True))  # type: ignore[misc]


def format_log(error: BaseException) -> str:
    """The log that would describe an exception: state of the process and trainer, then the traceback with torch's rank prefix."""
    import traceback

    lines = traceback.format_exception(error)
    message = "\n".join(process_memory.try_call(lambda link=link: str(link)) or "" for link in exception_chain(error))  # type: ignore[misc]
    number = os.environ.get("RANK", "")
    prefix = f"[rank{number}]: " if number.isdecimal() and process_rank.rank(os.environ) is not None else ""
    trace = "".join(f"{prefix}{line}\n" for line in "".join(lines).splitlines())
    return "\n".join([*process_memory.log_lines(message), *STATE.log_lines(), trace])


def locale_language() -> Lang:
    """The language of the environment's locale."""
    locale = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    return "zh" if locale.lower().startswith(("zh", "chinese")) else "en"


def _print_stderr(text: str) -> None:
    """Print on standard error in its encoding; does nothing if it is closed."""
    error = sys.stderr
    if error is None:
        return
    try:
        code = getattr(error, "encoding", None) or "utf-8"
        error.write(f"{text}\n".encode(code, "replace").decode(code))
        error.flush()
    except (OSError, ValueError):
        pass
