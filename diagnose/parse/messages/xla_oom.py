"""Messages of the allocator and compiler that JAX, XLA and TensorFlow share (grammars/xla_oom.lark)."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING

from diagnose.parse.messages.message_spec import parse_amount, statement_specs
from diagnose.parse.text import grammar_statements
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.units import IMPOSSIBLE, Size, show

if TYPE_CHECKING:
    from diagnose.parse.model.message import Message
    from diagnose.parse.text.grammar_statements import Statement

#: Bytes of an element, by TensorFlow's name of its type.
_WIDTH = {
    **dict.fromkeys(("float", "float32", "int32", "uint32", "qint32"), 4),
    **dict.fromkeys(("double", "float64", "int64", "uint64", "complex64"), 8),
    **dict.fromkeys(("half", "float16", "bfloat16", "int16", "uint16"), 2),
    **dict.fromkeys(("bool", "int8", "uint8", "qint8", "quint8", "float8_e4m3fn", "float8_e5m2"), 1),
    "complex128": 16,
}
_PARTS = {
    "parameter": "log.program_parameters",
    "preallocated temp": "log.program_temporary",
    "HLO temp": "log.program_temporary",
    "total": "log.program_total",
}
#: RESOURCE_EXHAUSTED is the status of every service that refuses: which one it was.
_REFUSALS = (
    ("message_too_large", lazy_compile(r"(?i)larger than max|message (?:size|length)|exceeds? (?:the )?(?:maximum|limit)")),
    ("rate_limit", lazy_compile(r"(?i)quota|rate.?limit|too many requests|\b429\b|per minute|throttl")),
)
_OF_MEMORY = lazy_compile(r"(?i)out of memory|(?:failed to|cannot|could not) allocate")
#: A shape that ends its line: the type may stand in the next one.
_UNTYPED = lazy_compile(r"OOM when allocating tensor[^\[\n]{0,20}\[[\d, ]{0,200}\]$")
_CARD = lazy_compile(r"GPU[_:](\d{1,4})")
_STATS = lazy_compile(r"\s*(?:Limit|InUse|MaxInUse|NumAllocs|MaxAllocSize|\w*Reserved|LargestFreeBlock):\s+\d")
_BLOCK = lazy_compile(
    r"\s*(?:BufferAssignment |(?:parameter|constant|maybe_live_out|preallocated temp|total) allocation:|Used [\d.]+[KMGT]? of)"
    r"|Total hbm usage|Program hbm requirement|Output size [\d.]+[BKMG]"
    r"|\s*(?:reserved|program|arguments|global|scoped|HLO temp) +[\d.]+[BKMG]"
)


def goes_on(text: str, line: str) -> bool:
    """Whether the next line continues it: details of a status, pool statistics, parts of a program, or a wrapped line."""
    if "Stats:" in text:
        return _STATS.match(line) is not None
    if _UNTYPED.search(text):
        return re.match(r"\s*\[\[Node: ", line) is not None
    if text.endswith("failed to allocate memory"):
        return re.match(r"\s*\[\[\{\{node ", line) is not None
    if re.search(r"RESOURCE_EXHAUSTED\s*$", text):
        return re.match(r"\s*(?:details|debug_error_string)\s*=", line) is not None
    if _BLOCK.match(line) or (not line.strip() and re.search(r"\bhbm\b", text)):
        return True
    return (
        re.search(r"(?:allocate|allocating|shape|and type|on|hbm\.?|of)\s*$", text) is not None
        and re.match(r"\s*[\[\d\w]", line) is not None
    )


def read(text: str) -> Message | None:
    """The message in a text; None where none of its words is one."""
    text = grammar_statements.collapse_blanks(text)
    statements = grammar_statements.parse_statements("xla_oom", text)
    first = {statement.kind: statement for statement in reversed(statements)}
    says = statement_specs("xla_oom")
    kind = next((kind for kind in says if kind in first), None)
    if kind is None:
        return _read_status(text) if "exhausted" in first else None
    statement = first[kind]
    place = statement if kind == "space" else first.get("in_space")
    if place is not None and not re.search(r"\bhbm\b", place.words[0]):  # vmem, smem: on the chip
        return says["on_chip"]._replace(figures=says[kind].figures).message(statement)
    message = says[kind].message(statement)
    if kind in ("bfc", "bfc_retry", "stats"):
        message.family = says[_owner(text)].family
    if (
        kind == "bfc" and len(statement.words) == 3 and (whole := parse_amount(statement.words[2])) is not None
    ):  # known to the step of 256 bytes
        message.figures["requested"] = Size(whole.low - 255, whole.high, whole.bytes, statement.words[1])
    if kind == "growth" and (exact := parse_amount(statement.words[1])) is not None:
        message.figures["requested"] = Size(exact.low, exact.high, exact.bytes, exact.text)
    if kind == "listed":
        message.facts["log.lists_temporaries"] = True
    if kind == "tensor":
        _add_shape_size(message, statement, first.get("node_type"))
    if message.gpu is None and (card := _CARD.search(statement.word("DEVICE", "BFC", "DESTINATION"))):
        message.gpu = int(card[1])
    if "unpadded" in first:
        message.facts["log.program_unpadded"] = parse_amount(first["unpadded"].words[0])
    for part in (statement for statement in statements if statement.kind == "buffers"):
        name = _PARTS.get(part.words[0].removesuffix(" allocation:"))
        if name is not None and len(part.words) > 1:
            message.facts.setdefault(name, parse_amount(part.words[1]))
    return message


def _add_shape_size(message: Message, statement: Statement, node_type: Statement | None) -> None:
    """Add the size of the tensor, from its shape and type; a tensor on the host makes it a host shortage. Without a type, that of the
    operation below; without one there, as many bytes as float32 has."""
    sides = [int(side) for side in re.findall(r"\d{1,19}", statement.word("DIMS"))]
    named = node_type.words[0].removeprefix("T=DT_").lower() if node_type is not None else ""
    dtype = statement.word("DTYPE") or named
    width = _WIDTH.get(dtype) if statement.word("DIMS") else None
    count = prod(sides)
    if width is not None:
        message.figures["requested"] = Size.exactly(count * width) if count * width <= IMPOSSIBLE else None
        message.doubt_request()
    elif sides and not dtype and count * 8 <= IMPOSSIBLE:  # a release that prints no type: its own default
        message.figures["requested"] = Size(count * 2, count * 8, count * 4, f"{show(count * 4)} (float32)")
    if "CPU" in statement.word("DEVICE"):
        message.family = statement_specs("xla_oom")["of_host"].family


def _owner(text: str) -> str:
    """JAX's or TensorFlow's copy of the allocator: by the path of its source, else by how an operation is named."""
    if re.search(r"local_xla|local_tsl|tensorflow/", text):
        return "of_tf"
    if re.search(r"external/(?:xla|tsl)/", text):
        return "of_jax"
    return "of_tf" if re.search(r"requested by op \w|freed_by_count|not a failure", text) else "of_jax"


def _read_status(text: str) -> Message | None:
    """A status that no statement of the grammar fits: about memory by its words, cut before its words, or a service's limit."""
    if "CUDA_ERROR_OUT_OF_MEMORY" in text:
        return None  # the driver's own word, read as such
    if _OF_MEMORY.search(text):
        return statement_specs("xla_oom")["of_memory"].message(_NOTHING)
    if re.search(r"(?:Xla|Jax)RuntimeError", text):
        return statement_specs("xla_oom")["cut_off"].message(_NOTHING)
    if not re.search(r"RESOURCE_EXHAUSTED\s*:|StatusCode\.RESOURCE_EXHAUSTED\s+details|code = RESOURCE_EXHAUSTED", text):
        return None
    reason = next((name for name, says in _REFUSALS if says.search(text)), "service_limit")
    return statement_specs("xla_oom")["refused"]._replace(reason=reason).message(_NOTHING)


_NOTHING = grammar_statements.Statement("nothing", (), (), 0, 0, 0)
