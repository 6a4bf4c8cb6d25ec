"""Messages of inference engines that lack memory (grammars/serving_oom.lark)."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from diagnose import families
from diagnose.parse.messages.message_spec import statement_specs
from diagnose.parse.model.message import Message
from diagnose.parse.text import grammar_statements
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.units import Size, finite_number, whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from diagnose.facts import Value
    from diagnose.parse.text.grammar_statements import Statement


#: Where in its start-up an engine was, by what it names as lacking.
_PHASES = {"of_cache": "kv_cache", "of_weights": "model_load", "of_graph": "init"}
_COMPONENTS = (("KV cache", "kv_cache"), ("odel", "model_load"))

#: A buffer of llama.cpp, by the device that it was to lie on.
_BUFFER = lazy_compile(r"to allocate ([A-Za-z]+)(?:_Host)?(\d{0,4}) buffer")

#: A line of the engine's own source in a traceback: the words are in a string that is only about to be raised or logged.
_SOURCE = lazy_compile(
    r"\s*(?:(?:raise\s+[\w.]{1,80}\(|assert\b[^\"']{0,200}|(?:self\.)?_?log\w{0,12}\.\w{1,20}\(|\w{1,20} \+?= ?\(?)\s?|(?<=\s{6}))"
    r"[fru]{0,2}[\"']"
)

#: Words that end a sentence about memory; a sentence without one may be wrapped into the next line.
_ADVICE = lazy_compile(r"\bTry |Decrease |This happens|Please |You need|\bExecutor creation|Malloc failed|buffer of size|out of memory")
_WRAPPED = lazy_compile(
    r"KV cache|GiB|gpu_memory_utilization|max seq len|memory utilization|free memory|available memory|model length|tokens"
)
_BEGINS = lazy_compile(
    r"To serve at least one|The model's max seq len|(?:Free memory|Externally held weights) on device|Error in memory prof"
)
_RECORD = lazy_compile(r"Traceback|\s+File \"|\S*(?:Error|Exception|Warning)\b|[A-Z]+ \d\d-\d\d ")
#: Lines that go on what an engine began, each after its own first line.
_TABLES = (
    (lazy_compile(r"[Oo]ut of memory\. Try to lower"), lazy_compile(r"\s*(?:Try to allocate|Ava(?:il|li)able )", re.IGNORECASE)),
    (
        lazy_compile(r"Executor creation failed"),
        lazy_compile(r"\s*(?:$|The following|Total GPU|Free GPU|Previously|Please|\w[\w ,-]{0,60}: )"),
    ),
    (lazy_compile(r"Malloc failed|failed to allocate buffer of size"), lazy_compile(r".{0,120}(?:failed to|unable to|[Ee]rror loading)")),
)


def goes_on(text: str, line: str) -> bool:
    """Whether the next line belongs to the message: a wrapped sentence, or the rest of what an engine prints over several."""
    if any(first.search(text) and continuation.match(line) for first, continuation in _TABLES):
        return True
    return not _ADVICE.search(text) and not _RECORD.match(line) and _WRAPPED.search(line) is not None


def prepend_lines(text: str, above: Sequence[str]) -> str:
    """The text with the lines above it (nearest last) in which its sentence began, where it was wrapped before the words that were
    found."""
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
    statements = {
        statement.kind: statement
        for statement in reversed(grammar_statements.parse_statements("serving_oom", grammar_statements.collapse_blanks(text)))
    }
    table = statement_specs("serving_oom")
    leading = next((kind for kind in table if kind in statements), None)
    if leading is None:
        return None
    says = table[leading]
    message = says.message(statements[leading])
    if (buffer := _BUFFER.search(statements[leading].words[0])) is not None:  # CUDA0: of the first card
        message.family = table.get(f"buffer_{buffer[1].lower()}", says).family
        message.gpu = whole_number(buffer[2])
    if says.no_cache is not None:
        message.facts["log.cache_none"] = says.no_cache
    if engine := families.of(says.family).engine:
        message.facts["rollout.engine"] = engine
    message.figures = _figures(leading, statements)
    if leading in ("malloc_host", "malloc_bytes"):  # the grammar takes whole numbers only
        message.doubt_request()
    message.figures = {name: size for name, size in message.figures.items() if size is not None}
    message.facts |= {name: value for name, value in _facts(statements).items() if value is not None}
    if leading == "parts":
        _add_parts(message, statements[leading])
    device = re.search(r"device (?:[a-z]{1,8}:)?(\d{1,4})\b", statements[leading].words[0])
    message.gpu = int(device[1]) if device else message.gpu
    message.phase = message.phase or _infer_phase(statements)
    return message


def _infer_phase(statements: Mapping[str, Statement]) -> str:
    """The phase, as what could not be allocated implies it."""
    component = statements.get("trt_component")
    if component is not None:
        return next((phase for name, phase in _COMPONENTS if name in component.words[0]), "init")
    return next((phase for kind, phase in _PHASES.items() if kind in statements), "")


def _figures(leading: str, statements: Mapping[str, Statement]) -> dict[str, Size | None]:
    """The sizes of a message by the names of Event."""
    numbers = _numbers(statements[leading])
    match leading:
        case "free_below" | "budget_below":
            free, capacity, _, desired = _figures_of_share(statements[leading])
            return {"free": _gib(free), "capacity": _gib(capacity), "requested": _gib(desired)}
        case "held_outside":  # what may be taken, and what is taken already
            used, capacity, _, desired = _figures_of_share(statements[leading])
            return {"requested": _gib(used), "capacity": _gib(capacity), "allowed": _gib(desired)}
        case "kv_needed":
            room = statements.get("kv_available")
            return {
                "requested": _labelled_size(statements[leading]),
                "free": _labelled_size(room) if room and "(-" not in room.words[0] else None,
            }
        case "drift":
            return {"free": _free_size(statements.get("current_free"))}
        case "unbalanced":
            least = statements.get("others_free")
            return {"free": Size.printed(_last_number(least), "GB", binary=True) if least else None}
        case "trt_executor":
            named = {"capacity": statements.get("trt_total"), "free": statements.get("trt_free")}
            return {name: _gib(_last_number(statement)) for name, statement in named.items() if statement}
        case "malloc":
            return {"requested": _requested_size(numbers, statements.get("malloc_bytes"))}
        case "malloc_host" | "malloc_bytes":
            return {"requested": Size.printed(_last_number(statements[leading]), "bytes")}
        case "swap" if numbers[0]:
            return {"requested": _gib(numbers[0])}
        case "aligned":
            return {"requested": Size.printed(numbers[0], "MB", binary=True)}
        case _:
            return _figures_of_host(leading, statements[leading], numbers)


def _figures_of_host(leading: str, statement: Statement, numbers: Sequence[str]) -> dict[str, Size | None]:
    """The sizes of a message about host RAM."""
    match leading:
        case "pool_host":
            return {"requested": _decimal(numbers[0]), "free": _decimal(numbers[1])}
        case "pinned_ggml":
            return {"requested": Size.printed(numbers[0], "MiB")}
        case "host_short":
            needed, free, *_ = (*re.findall(r"\(([^)]*)\)", statement.words[0]), "", "")
            return {"requested": grammar_statements.parse_size(needed), "free": grammar_statements.parse_size(free)}
    return {}


def _requested_size(numbers: list[str], exact: Statement | None) -> Size | None:
    """A request that ggml prints in MiB and in bytes: shown in MiB, exact to the byte."""
    count = Size.printed(_last_number(exact), "bytes") if exact else None
    if not numbers[1]:
        return count
    printed = Size.printed(numbers[0], "MiB")
    return Size(count.low, count.high, count.bytes, printed.text) if count and printed and count.bytes in printed else printed


def _facts(statements: Mapping[str, Statement]) -> dict[str, Value]:
    """Facts of the run that a message states."""
    values = _facts_of_paged_cache(statements.get("trt_tokens"))
    for kind, statement in statements.items():
        numbers = _numbers(statement)
        match kind:
            case "too_long_tokens":
                values |= {"rollout.max_model_len": whole_number(numbers[0]), "rollout.cache_tokens": whole_number(numbers[1])}
            case "served" | "tgi_total":
                values["rollout.max_model_len"] = whole_number(numbers[0])
            case "kv_available":
                values["rollout.cache_deficit" if "(-" in statement.words[0] else "rollout.cache_memory"] = _labelled_size(statement)
            case "longest":
                values["rollout.fitting_len"] = whole_number(numbers[0])
            case "free_below" | "budget_below" | "held_outside":
                *_, share, budget = _figures_of_share(statement)
                values |= {"rollout.gpu_memory_utilization": finite_number(share), "rollout.engine_budget": _gib(budget)}
            case "initial_free":
                values["rollout.free_at_start"] = _free_size(statement)
            case "rows":  # as many as may run at once
                values["rollout.max_num_seqs"] = whole_number(numbers[0])
            case "fraction":
                values["rollout.gpu_memory_utilization"] = finite_number(statement.words[0].partition("=")[2])
            case "tokens_wanted" | "tgi_prefill":
                values["log.requested_tokens"] = whole_number(numbers[0])
            case "tokens_free":
                values["log.free_tokens"] = whole_number(numbers[0])
    return values


def _facts_of_paged_cache(statement: Statement | None) -> dict[str, Value]:
    """The tokens that TensorRT-LLM's cache holds; a sequence may have so many blocks of so many tokens each."""
    if statement is None:
        return {}
    held, *_, of_block, blocks = _numbers(statement)
    longest = int(of_block) * int(blocks) if blocks else None
    return {"rollout.cache_tokens": whole_number(held), "rollout.fitting_len": whole_number(held), "rollout.max_model_len": longest}


def _add_parts(message: Message, statement: Statement) -> None:
    """Add what an engine may take, its weights and its buffer for one prefill, and by how much they exceed that; no failure of memory where
    they do not."""
    share, weights, buffer = (Size.printed(number, "MB", binary=True) for number in _numbers(statement)[:3])
    if share is None or weights is None or buffer is None:
        return
    message.figures["allowed"] = share
    message.facts |= {"rollout.engine_budget": share, "rollout.engine_weights": weights, "rollout.activation_peak": buffer}
    if weights.bytes + buffer.bytes > share.bytes:
        message.facts["rollout.over_by"] = weights + buffer - share
    else:
        message.status, message.reason = "lookalike", "parts_fit"


def _numbers(statement: Statement) -> list[str]:
    """The numbers of a statement, at least four: a line that was cut may lack any, and then the last are empty."""
    numbers: list[str] = re.findall(r"\d[\d,]*(?:\.\d+)?", statement.words[0])
    return [*numbers, *[""] * (4 - len(numbers))]


def _figures_of_share(statement: Statement) -> list[str]:
    """What is free or held, the card, the share, and the share in GiB; empty where somebody left a figure out."""
    of_card = re.search(r"\(([\d.]+)/([\d.]+) GiB\)", statement.words[0])
    of_share = re.search(r"\(([\d.]+)(?:, ([\d.]+) GiB)?\)$", statement.words[0])
    return [group or "" for match in (of_card, of_share) for group in (match.groups() if match else ("", ""))]


def _last_number(statement: Statement) -> str:
    return next((number for number in reversed(_numbers(statement)) if number), "")


def _gib(digits: str) -> Size | None:
    return Size.printed(digits, "GiB")


def _decimal(digits: str) -> Size | None:
    """GB of a thousand million bytes."""
    size = Size.printed(digits, "bytes")
    return replace(size.scaled(10**9, 1), text=f"{digits} GB") if size else None


def _labelled_size(statement: Statement) -> Size | None:
    """A figure in the unit printed beside it; vLLM 0.7 prints GB and means GiB."""
    amount = re.search(r"(\d[\d.]*) (Gi?B)", statement.words[0])
    return Size.printed(amount[1], amount[2], binary=True) if amount else None


def _free_size(statement: Statement | None) -> Size | None:
    """A figure of the memory check: GiB with a unit, bytes without one."""
    if statement is None:
        return None
    return Size.printed(_last_number(statement), "GiB" if statement.words[0].endswith("GiB") else "bytes")
