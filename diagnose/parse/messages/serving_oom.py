"""What inference engines say when their memory does not reach (grammars/serving_oom.lark)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from diagnose import families
from diagnose.parse.messages.message_spec import sayings
from diagnose.parse.model.message import Message
from diagnose.parse.text import grammar_statements
from diagnose.parse.text.lazy_re import later
from diagnose.units import Size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from diagnose.facts import Value
    from diagnose.parse.text.grammar_statements import Statement


#: Where in its start-up an engine was, by what it names as lacking.
_PHASES = {"of_cache": "kv_cache", "of_weights": "model_load", "of_graph": "init"}
_COMPONENTS = (("KV cache", "kv_cache"), ("odel", "model_load"))

#: A line of the engine's own source in a traceback: the words are in a string that is only about to be raised or logged.
_SOURCE = later(
    r"\s*(?:(?:raise\s+[\w.]{1,80}\(|assert\b[^\"']{0,200}|(?:self\.)?_?log\w{0,12}\.\w{1,20}\(|\w{1,20} \+?= ?\(?)\s?|(?<=\s{6}))"
    r"[fru]{0,2}[\"']"
)

#: Words that end a sentence about memory; a sentence without one may be wrapped into the next line.
_ADVICE = later(r"\bTry |Decrease |This happens|Please |You need|\bExecutor creation|Malloc failed|buffer of size|out of memory")
_WRAPPED = later(r"KV cache|GiB|gpu_memory_utilization|max seq len|memory utilization|free memory|available memory|model length|tokens")
_BEGINS = later(r"To serve at least one|The model's max seq len|(?:Free memory|Externally held weights) on device|Error in memory prof")
_RECORD = later(r"Traceback|\s+File \"|\S*(?:Error|Exception|Warning)\b|[A-Z]+ \d\d-\d\d ")
#: Lines that go on what an engine began, each after its own first line.
_TABLES = (
    (later(r"[Oo]ut of memory\. Try to lower"), later(r"\s*(?:Try to allocate|Ava(?:il|li)able )", re.IGNORECASE)),
    (later(r"Executor creation failed"), later(r"\s*(?:$|The following|Total GPU|Free GPU|Previously|Please|\w[\w ,-]{0,60}: )")),
    (later(r"Malloc failed|failed to allocate buffer of size"), later(r".{0,120}(?:failed to|unable to|[Ee]rror loading)")),
)


def goes_on(text: str, line: str) -> bool:
    """Whether the next line belongs to the message: a wrapped sentence, or the rest of what an engine prints over several."""
    if any(first.search(text) and rest.match(line) for first, rest in _TABLES):
        return True
    return not _ADVICE.search(text) and not _RECORD.match(line) and _WRAPPED.search(line) is not None


def begun(text: str, above: Sequence[str]) -> str:
    """The text with the lines above it (the nearest last) that its sentence began in, where it was wrapped before what found it."""
    if _BEGINS.search(text):
        return text
    for count, line in enumerate(reversed(above), 1):
        if _BEGINS.search(line) and not _ADVICE.search(line):
            return "\n".join((*above[-count:], text))
    return text


def read(text: str) -> Message | None:
    """The message in a line; None where none of its words is one."""
    if _SOURCE.match(text):
        return None
    all_said = {said.kind: said for said in reversed(grammar_statements.statements("serving_oom", grammar_statements.collapsed(text)))}
    table = sayings("serving_oom")
    leading = next((kind for kind in table if kind in all_said), None)
    if leading is None:
        return None
    says = table[leading]
    message = says.message(all_said[leading])
    if says.no_cache is not None:
        message.facts["log.cache_none"] = says.no_cache
    if engine := families.of(says.family).engine:
        message.facts["rollout.engine"] = engine
    message.figures = {name: size for name, size in _figures(leading, all_said).items() if size is not None}
    message.facts |= {name: value for name, value in _facts(all_said).items() if value is not None}
    device = re.search(r"device (?:[a-z]{1,8}:)?(\d{1,4})\b", all_said[leading].words[0])
    message.gpu = int(device[1]) if device else None
    message.phase = message.phase or _shown(all_said)
    return message


def _shown(said: Mapping[str, Statement]) -> str:
    """The phase that shows in what could not be allocated."""
    component = said.get("trt_component")
    if component is not None:
        return next((phase for name, phase in _COMPONENTS if name in component.words[0]), "init")
    return next((phase for kind, phase in _PHASES.items() if kind in said), "")


def _figures(leading: str, said: Mapping[str, Statement]) -> dict[str, Size | None]:
    """The sizes of a message by the names of Event."""
    numbers = _numbers(said[leading])
    match leading:
        case "free_below" | "budget_below":
            free, capacity, _, desired = numbers[-4:]
            return {"free": _gib(free), "capacity": _gib(capacity), "requested": _gib(desired)}
        case "held_outside":  # what may be taken, and what is taken already
            held, capacity, _, desired = numbers[-4:]
            return {"requested": _gib(held), "capacity": _gib(capacity), "allowed": _gib(desired)}
        case "kv_needed":
            room = said.get("kv_available")
            return {"requested": _labelled(said[leading]), "free": _labelled(room) if room and "(-" not in room.words[0] else None}
        case "drift":
            return {"free": _free(said.get("current_free"))}
        case "unbalanced":
            least = said.get("others_free")
            return {"free": Size.printed(_numbers(least)[-1], "GB", binary=True) if least else None}
        case "trt_executor":
            named = {"capacity": said.get("trt_total"), "free": said.get("trt_free")}
            return {name: _gib(_numbers(one)[-1]) for name, one in named.items() if one}
        case "malloc":
            return {"requested": _asked(numbers, said.get("malloc_bytes"))}
        case "malloc_host":
            return {"requested": Size.printed(numbers[-1], "bytes")}
        case "host_short":
            needed, free = re.findall(r"\(([^)]*)\)", said[leading].words[0])
            return {"requested": grammar_statements.size(needed), "free": grammar_statements.size(free)}
    return {}


def _asked(numbers: list[str], exact: Statement | None) -> Size | None:
    """A request that ggml prints in MiB and once more in bytes: shown as the first, known as the second."""
    count = Size.printed(_numbers(exact)[-1], "bytes") if exact else None
    if len(numbers) < 2:
        return count
    printed = Size.printed(numbers[0], "MiB")
    return Size(count.low, count.high, count.bytes, printed.text) if count and printed and count.bytes in printed else printed


def _facts(said: Mapping[str, Statement]) -> dict[str, Value]:
    """What a message says of the run."""
    found: dict[str, Value] = {}
    for kind, one in said.items():
        numbers = _numbers(one)
        match kind:
            case "too_long_tokens":
                found |= {"rollout.max_model_len": _count(numbers[0]), "rollout.cache_tokens": _count(numbers[1])}
            case "served" | "tgi_total":
                found["rollout.max_model_len"] = _count(numbers[0])
            case "kv_available":
                found["rollout.cache_deficit" if "(-" in one.words[0] else "rollout.cache_memory"] = _labelled(one)
            case "longest":
                found["rollout.fitting_len"] = _count(numbers[0])
            case "free_below" | "budget_below" | "held_outside":
                found |= {"rollout.gpu_memory_utilization": float(numbers[-2]), "rollout.engine_budget": _gib(numbers[-1])}
            case "initial_free":
                found["rollout.free_at_start"] = _free(one)
            case "rows":  # as many as may run at once
                found["rollout.max_num_seqs"] = _count(numbers[0])
            case "fraction":
                found["rollout.gpu_memory_utilization"] = float(one.words[0].partition("=")[2])
            case "tokens_wanted" | "tgi_prefill":
                found["log.requested_tokens"] = _count(numbers[0])
            case "tokens_free":
                found["log.free_tokens"] = _count(numbers[0])
    return found


def _numbers(said: Statement) -> list[str]:
    return [number.rstrip(".") for number in re.findall(r"\d[\d,]*(?:\.\d+)?", said.words[0])]


def _count(digits: str) -> int:
    return int(digits.replace(",", ""))


def _gib(digits: str) -> Size | None:
    return Size.printed(digits, "GiB")


def _labelled(said: Statement) -> Size | None:
    """The figure of a statement with its own unit: vLLM 0.7 writes GB and means GiB."""
    amount = re.search(r"(\d[\d.]*) (Gi?B)", said.words[0])
    return Size.printed(amount[1], amount[2], binary=True) if amount else None


def _free(said: Statement | None) -> Size | None:
    """A figure of the memory check: GiB, or bytes where it has no unit."""
    if said is None:
        return None
    return Size.printed(_numbers(said)[-1], "GiB" if said.words[0].endswith("GiB") else "bytes")
