"""Structure-aware fuzzing: whatever the input, no exception, nothing above the limits, no patch that does not read as it was meant.

    python tests/fuzzing/campaign.py --seconds 60            what CI runs
    python tests/fuzzing/campaign.py --seconds 28800 --processes 2 --keep
    python tests/fuzzing/campaign.py --seed 1234             one case again

First the kept seeds (tests/fuzzing/seeds/, each an input that once failed, made small), then new cases by number, from `--start` or the
clock. `--keep` adds failing inputs to the seeds when they are found and makes them small at the end: a number names a case only as
long as the corpus is the same. Exit status 1 where anything failed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import shlex
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

from fuzz_inputs import Case, make  # noqa: E402 - found by the line above

from diagnose.adapters.formats.settings import ConfigSource  # noqa: E402
from diagnose.errors import UserError  # noqa: E402
from diagnose.pipeline import check, explain  # noqa: E402
from diagnose.plan.patch import patching  # noqa: E402
from diagnose.render.formats import RENDERERS  # noqa: E402
from diagnose.render.parts.view import PLAIN  # noqa: E402

if TYPE_CHECKING:
    from diagnose.diagnosis import Diagnosis

SEEDS = HERE / "seeds"
#: CPU seconds of one case, and bytes that a process may reach.
MAX_SECONDS, MAX_MEMORY = 3.0, 400 << 20
#: Cases after which a process is replaced, so that what it reached belongs to few of them.
CASES_PER_PROCESS = 400


def run_case(case: Case) -> str:
    """What is wrong with the answers to a case; empty for nothing."""
    start = time.process_time()
    try:
        configs, options = [ConfigSource(name, data) for name, data in case.configs], dict(case.options)
        model, gpu = options.pop("model", None), options.pop("gpu", None)
        if case.carrier.startswith("check"):
            diagnosis = check(configs)
        else:
            diagnosis = explain(list(case.logs), configs=configs, model=model, gpu=gpu, set=options)
        for name, render in RENDERERS.items():
            render(diagnosis, "zh" if name == "text" else "en", PLAIN)
        fault = patch_fault(diagnosis)
    except UserError as error:
        fault = "" if error.to("en") and error.to("zh") else "an error without a sentence"
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} in {Path(place.filename).name}:{place.lineno} {place.name}: {error}"[:300]
    seconds = time.process_time() - start
    return fault or (f"{seconds:.1f} s" if seconds > MAX_SECONDS else "")


def patch_fault(diagnosis: Diagnosis) -> str:
    """What is wrong with the plan's patch: a crashed rule, a file that cannot be read again, a value that is not the one meant."""
    crashed = next((notice for notice in diagnosis.notices if notice.code == "rule_error"), None)
    if crashed is not None:
        return f"a rule crashed: {crashed.message.en}"
    plan = diagnosis.outcome.plan
    edits = plan.edits if plan is not None else ()
    for name, new in patching.texts(diagnosis.documents, edits).items():
        again = explain("", configs=[ConfigSource(name, new.encode(errors="surrogatepass"))])
        if any(notice.level == "error" and notice.code != "config.too_large" for notice in again.notices):
            return f"the patched {Path(name).suffix} file cannot be read"
        parts = [document for document in again.documents if document.name == name]
        for edit in plan.edits if plan is not None else ():
            if edit.target != name or edit.to is None or edit.renamed:
                continue
            read = [(part.form, entry.written) for part in parts for entry in part.entries if entry.key == edit.key]  # of each program
            if read and not any(is_written(edit.to, written, form) for form, written in read):
                return f"{edit.key} was to be {edit.to} and reads {', '.join(written for _, written in read)}"
    return ""


def is_written(wanted: str, written: str, form: str) -> bool:
    """Whether a value stands in a file, letter by letter or as a shell passes it on."""
    return wanted == written or (form == "shell" and shlex.split(wanted) == shlex.split(written))


def memory() -> int:
    """The most bytes that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


# -- processes


class Result(NamedTuple):
    """What became of the case of a number; `seconds` of CPU and the most `bytes` that its process held until then."""

    number: int
    carrier: str
    fault: str
    seconds: float = 0.0
    bytes: int = 0


def work(numbers: list[int], results: multiprocessing.Queue[Result]) -> None:
    """Run some cases; a process that dies has said which one it was at. One that uses ten times the limit is ended by SIGXCPU."""
    for number in numbers:
        case = make(number)
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + 10 * MAX_SECONDS) + 1, resource.RLIM_INFINITY))
        results.put(Result(number, case.carrier, "begun"))
        start = time.process_time()
        fault = run_case(case)
        if not fault and memory() > MAX_MEMORY:
            fault = f"more than {MAX_MEMORY >> 20} MiB"
        results.put(Result(number, case.carrier, fault, time.process_time() - start, memory()))
        if fault.startswith("more than"):
            return


def campaign(seconds: float, processes: int, start: int) -> Iterator[Result]:
    """The result of each case until the time is over. A case that waits for a hundred times the limit is a fault, too."""
    context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    end, following = time.monotonic() + seconds, start
    running: list[tuple[multiprocessing.process.BaseProcess, multiprocessing.Queue[Result], list[tuple[int, str, float]]]] = []
    try:
        while time.monotonic() < end:
            while len(running) < processes:
                results = context.Queue()
                numbers = list(range(following, following + CASES_PER_PROCESS))
                following += CASES_PER_PROCESS
                process = context.Process(target=work, args=(numbers, results), daemon=True)
                process.start()
                running.append((process, results, []))
            time.sleep(0.05)
            for item in list(running):
                process, results, begun = item
                alive = process.is_alive()
                while not results.empty():
                    result = results.get()
                    if result.fault == "begun":
                        begun[:] = [(result.number, result.carrier, time.monotonic())]
                    else:
                        begun.clear()
                        yield result
                if begun and (not alive or time.monotonic() - begun[0][2] > 100 * MAX_SECONDS):
                    hangs = alive or process.exitcode == -signal.SIGXCPU
                    yield Result(*begun[0][:2], "it hangs" if hangs else f"the process died ({process.exitcode})")
                    alive = False
                if not alive:
                    process.kill()
                    running.remove(item)
    finally:
        for process, _, _ in running:
            process.kill()


# -- seeds


def load_seed(folder: Path) -> Case:
    """A kept input: log-* and config-* files and options.json in a folder."""
    logs = [path.read_bytes() for path in sorted(folder.glob("log-*"))]
    configs = [(path.name[9:], path.read_bytes()) for path in sorted(folder.glob("config-*"))]
    options = folder / "options.json"
    return Case(0, folder.name, logs, configs, json.loads(options.read_text(encoding="utf-8")) if options.is_file() else {})


def save_seed(case: Case, fault: str) -> Path:
    folder = SEEDS / f"{case.carrier.replace(' ', '-')}-{case.seed}"
    folder.mkdir(parents=True, exist_ok=True)
    for number, log in enumerate(case.logs):
        (folder / f"log-{number}").write_bytes(log)
    for number, (name, config) in enumerate(case.configs):
        (folder / f"config-{number}-{name}").write_bytes(config)
    if case.options:
        (folder / "options.json").write_text(json.dumps(case.options), encoding="utf-8")
    (folder / "fault.txt").write_text(f"{fault}\n", encoding="utf-8")
    return folder


def shrink(case: Case, seconds: float = 60.0) -> Case:
    """The case with as few lines, logs and configs as still fail in the same way."""
    wanted, end = kind_of(run_case(case)), time.monotonic() + seconds

    def fails(candidate: Case) -> bool:
        return time.monotonic() < end and kind_of(run_case(candidate)) == wanted

    for attribute in ("logs", "configs"):
        for at in reversed(range(len(getattr(case, attribute)))):
            kept = [*getattr(case, attribute)[:at], *getattr(case, attribute)[at + 1 :]]
            smaller = replace(case, logs=kept) if attribute == "logs" else replace(case, configs=kept)
            case = smaller if fails(smaller) else case
    for at in range(len(case.logs)):
        case.logs[at] = shrink_text(case.logs[at], lambda text, at=at: fails(replaced(case, at, log=text)))  # type: ignore[misc]
    for at, (name, data) in enumerate(case.configs):
        case.configs[at] = (name, shrink_text(data, lambda text, at=at: fails(replaced(case, at, config=text))))  # type: ignore[misc]
    return case


def replaced(case: Case, at: int, log: bytes | None = None, config: bytes | None = None) -> Case:
    logs, configs = [*case.logs], [*case.configs]
    if log is not None:
        logs[at] = log
    if config is not None:
        configs[at] = (configs[at][0], config)
    return replace(case, logs=logs, configs=configs)


def shrink_text(text: bytes, fails: Callable[[bytes], bool]) -> bytes:
    lines = text.split(b"\n")
    size = len(lines) // 2
    while size:
        at = 0
        while at < len(lines):
            fewer = lines[:at] + lines[at + size :]
            if fails(b"\n".join(fewer)):
                lines = fewer
            else:
                at += size
        size //= 2
    return b"\n".join(lines)


def kind_of(fault: str) -> str:
    """The exception and its place, without figures and texts."""
    return fault.split(": ")[0] if ":" in fault else "".join(sign for sign in fault if not sign.isdigit())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--start", type=int, default=int(time.time()) * 1000, help="the first number")
    parser.add_argument("--seed", type=int, help="only this number, with the whole traceback")
    parser.add_argument("--slack", type=float, default=1.0, help="how many times the CPU seconds a case may take, on a busy machine")
    parser.add_argument("--keep", action="store_true", help="keep failing inputs, made small, as seeds")
    options = parser.parse_args()
    globals()["MAX_SECONDS"] = MAX_SECONDS * options.slack
    if options.seed is not None:
        case = make(options.seed)
        print(json.dumps({"carrier": case.carrier, "logs": [len(log) for log in case.logs], "configs": [name for name, _ in case.configs]}))
        print(run_case(case) or "nothing is wrong")
        return 0
    faults: dict[str, tuple[int, str]] = {}
    for folder in sorted(SEEDS.iterdir()) if SEEDS.is_dir() else ():
        fault = run_case(load_seed(folder))
        if fault:
            faults[f"seed {folder.name}"] = (0, fault)
    seeds = len(list(SEEDS.iterdir())) if SEEDS.is_dir() else 0
    carriers, occurrences = Counter[str](), Counter[str]()
    slowest = largest = Result(0, "", "")
    for result in campaign(options.seconds, options.processes, options.start):
        number, fault = result.number, result.fault
        carriers[result.carrier] += 1
        slowest, largest = max(slowest, result, key=lambda one: one.seconds), max(largest, result, key=lambda one: one.bytes)
        kind = kind_of(fault)
        occurrences[kind] += bool(fault)
        if fault and kind not in faults:  # told and kept at once: a long run may be ended, and another corpus splices other cases
            faults[kind] = (number, fault)
            print(f"{fault}  [--seed {number}]", flush=True)
            if options.keep:
                save_seed(make(number), fault)
    print(f"{seeds} kept seeds, {sum(carriers.values())} new cases from {options.start}: {dict(sorted(carriers.items()))}")
    print(f"slowest: {slowest.seconds:.1f} s of CPU [--seed {slowest.number}]; most: {largest.bytes >> 20} MiB [--seed {largest.number}]")
    for kind, (number, fault) in faults.items():
        print(f"{occurrences[kind] or 1} x {fault}  [--seed {number}]" if number else f"{kind}: {fault}")
        if options.keep and number and not fault.startswith(("it hangs", "the process died")):
            print(f"  kept as {save_seed(shrink(make(number)), fault).relative_to(HERE)}")
    print("nothing is wrong" if not faults else f"{len(faults)} kinds of faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
