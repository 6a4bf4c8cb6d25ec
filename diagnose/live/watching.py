"""`watch` and `install_excepthook`: an exception of memory is explained as it passes; the same exception goes on."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ContextDecorator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from diagnose.live import figures, process_rank
from diagnose.live.noted_settings import NOTED

if TYPE_CHECKING:
    from diagnose.diagnosis import Diagnosis
    from diagnose.inputs.given import Material
    from diagnose.phrases import Lang

#: Outer exceptions between what passes and what failed.
DEEPEST = 20

#: Left on an exception that was explained, so that it is explained once.
MARK = "_oomdoctor_explained"

#: When this process began to watch: answers of other processes from before belong to other launches.
_SINCE = time.time()


class Watch:
    """How exceptions are explained. `config`: one config or several, as a Path or as text. `report`: what takes the diagnosis;
    without it the answer is printed on standard error. Further options are those of `explain`."""

    def __init__(
        self,
        config: Material | Sequence[Material] = (),
        *,
        report: Callable[[Diagnosis], object] | None = None,
        lang: Lang | None = None,
        **options: Any,
    ) -> None:
        single = isinstance(config, (str, bytes, Path)) or hasattr(config, "read")
        self.configs: list[Any] = [config] if single else list(config)  # type: ignore[arg-type]
        self.report, self.lang, self.options = report, lang, options

    def passing(self, error: BaseException | None) -> None:
        """Explain an exception, once, where it is one of memory. Raises nothing."""
        try:
            if error is None or not of_memory(error) or getattr(error, MARK, False):
                return
            diagnosis = self.diagnosed(error)
            mark(error)
            if diagnosis.verdict.status not in ("oom", "suspected"):
                return
            if self.report is not None:
                self.report(diagnosis)
            else:
                self._print(diagnosis)
        except Exception as trouble:
            if os.environ.get("OOMDOCTOR_DEBUG"):
                import traceback

                traceback.print_exc()
            _say(f"oomdoctor: {type(trouble).__name__}: {trouble}"[:300])

    def diagnosed(self, error: BaseException) -> Diagnosis:
        """The diagnosis of an exception, with what the process knows. Raises what `explain` raises."""
        from diagnose.pipeline import explain
        from diagnose.scan.source import Source

        options = dict(self.options)
        count = figures.world()
        if count is not None and "gpus" not in options:
            options["gpus"] = count
        log = as_log(error)
        card = None if "total capacity" in log else figures.capacity()
        if card:
            options["set"] = {"hardware.capacity": f"{card / 2**30:.2f} GiB", **options.get("set", {})}
        recorded = figures.history()
        if recorded is not None:
            options.setdefault("snapshot", Source.text(recorded, name="this process"))
        text = Source.text(log.encode(errors="replace"), name="exception")
        return explain(text, configs=[*self.configs, *NOTED.configs()], **options)

    def _print(self, diagnosis: Diagnosis) -> None:
        """The answer on standard error: at length from one rank, one sentence from the others."""
        from diagnose.render.formats import RENDERERS
        from diagnose.render.parts.strings import one_line
        from diagnose.render.parts.view import stream_view

        lang = self.lang or language()
        number = process_rank.rank(os.environ)
        folder = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - holds an empty file that says: answered
        if number is not None and not process_rank.first_to_answer(folder, _SINCE, os.environ):
            _say(f"oomdoctor: rank {number}: {one_line(diagnosis.verdict.headline.to(lang))}")
            return
        _say(RENDERERS["text"](diagnosis, lang, stream_view(sys.stderr)).rstrip())


class watch(Watch, ContextDecorator):  # noqa: N801 - used as a word: with watch():
    """`with watch(config=...):` or `@watch()`: an exception of memory that leaves the block is explained, and leaves it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.passing(error)


def install_excepthook(config: Material | Sequence[Material] = (), **options: Any) -> Callable[[], None]:
    """Explain an exception of memory that ends the process or a thread, after its traceback was printed. Takes what `watch` takes.

    The hooks that were there go on working. Returns a function that takes ours away again.
    """
    import threading

    watching = Watch(config, **options)
    before, in_threads = sys.excepthook, threading.excepthook
    live = True

    def ours(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        before(kind, error, trace)
        if live:
            watching.passing(error)

    def of_thread(told: threading.ExceptHookArgs) -> None:
        in_threads(told)
        if live:
            watching.passing(told.exc_value)

    def remove() -> None:
        nonlocal live
        live = False
        if sys.excepthook is ours:
            sys.excepthook = before
        if threading.excepthook is of_thread:
            threading.excepthook = in_threads

    sys.excepthook, threading.excepthook = ours, of_thread
    return remove


def chain(error: BaseException) -> list[BaseException]:
    """The exception and those that led to it, as its traceback shows them."""
    found: list[BaseException] = []
    waiting = [error]
    while waiting and len(found) < DEEPEST:
        one = waiting.pop(0)
        if any(one is each for each in found):
            continue
        found.append(one)
        before = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
        waiting += [each for each in (before, *getattr(one, "exceptions", ())) if isinstance(each, BaseException)]
    return found


def of_memory(error: BaseException) -> bool:
    """Whether it may be one of memory: by its class (torch's is known by name), or by what a log would be searched for."""
    if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit)):
        return False
    for one in chain(error):
        if isinstance(one, MemoryError) or any(kind.__name__ == "OutOfMemoryError" for kind in type(one).__mro__):
            return True
        text = figures.asked(lambda one=one: str(one))  # type: ignore[misc]
        if text and _speaks(text):
            return True
    return False


def _speaks(text: str) -> bool:
    from diagnose.scan.memory_words import literals

    return any(True for _ in literals().find(memoryview(text[:65536].encode(errors="replace"))))


def mark(error: BaseException) -> None:
    """Remember that it was explained, and that those inside it were."""
    for one in chain(error):
        figures.asked(lambda one=one: setattr(one, MARK, True))  # type: ignore[misc]


def as_log(error: BaseException) -> str:
    """What a log would hold: what was going on, what the process knows, the traceback. Ranks as torch marks them."""
    import traceback

    shown = traceback.format_exception(error)
    message = "\n".join(figures.asked(lambda one=one: str(one)) or "" for one in chain(error))  # type: ignore[misc]
    number = os.environ.get("RANK", "")
    prefix = f"[rank{number}]: " if number.isdecimal() and process_rank.rank(os.environ) is not None else ""
    trace = "".join(f"{prefix}{line}\n" for line in "".join(shown).splitlines())
    return "\n".join([*figures.lines(message), *NOTED.lines(), trace])


def language() -> Lang:
    """The language of the locale."""
    told = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    return "zh" if told.lower().startswith(("zh", "chinese")) else "en"


def _say(text: str) -> None:
    """Lines on standard error, in what it can write; lost where nobody reads them."""
    error = sys.stderr
    if error is None:
        return
    try:
        code = getattr(error, "encoding", None) or "utf-8"
        error.write(f"{text}\n".encode(code, "replace").decode(code))
        error.flush()
    except (OSError, ValueError):
        pass
