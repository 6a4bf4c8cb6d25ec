"""The tensor of a failed request where the log prints its shape, or the size of the same thing elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from diagnose import catalogue, families
from diagnose.budget.attribution.tensor_table import Tensor, printed_tensors, tensors
from diagnose.budget.model.block_rounding import allocators, is_ambiguous_block, prints_as
from diagnose.budget.model.ledger import Attribution
from diagnose.parse.text.lazy_re import finds
from diagnose.phrases import Text, phrase, same

if TYPE_CHECKING:
    from diagnose.facts import FactBook
    from diagnose.parse.model.event import Event, PrintedTensor

#: Behind the name of a tensor whose shape is a product of a script's constants (diagnose/adapters/python/script_tensors.py).
SUPPOSED = " (of constants)"
#: What the first side of a shape follows; a side of one has nothing to lower.
ROWS = "train.micro_batch_size"
#: Bytes per element that are tried where the log does not name a type, the most common first.
WIDTHS = (4, 2, 8, 1)


def printed_tensor(book: FactBook, event: Event, index: int) -> Attribution | None:
    """What the log itself says of the requested tensor; None where nothing that it prints has that size."""
    memory = "host" if families.of(event.family).memory == "host" else "card"
    entries = [tensor for tensor in printed_tensors() if tensor.memory == memory]
    for tensor in entries:
        if event.requested is not None and any(_overlaps(book, name, event) for name in tensor.equals):
            return _attribution(tensor, event, index, event.requested.bytes, None)
    for shape in (*event.printed, *(made for made in _of_scripts(book) if not made.name.endswith(SUPPOSED))):
        widths = (shape.width,) if shape.width else WIDTHS
        width = next((width for width in widths if _prints(book, shape.elements * width, event)), 0)
        text = _described(shape)
        named = next((tensor for tensor in entries if any(finds(pattern, text) for pattern in tensor.printed)), None)
        own = _of_operation(text) if memory == "host" and shape.name else None
        if width and named is not None:
            made = _attribution(own or named, event, index, shape.elements * width, (*shape.shape, width))
            if own is None and made.key == "ledger.p_layer_weight":
                return _as_state(made, event)
            return (
                made
                if own is None
                else made._replace(tensor=phrase("ledger.host_tensor", tensor=made.tensor), group=named.group, lowered_by={})
            )
    return None


def _as_state(made: Attribution, event: Event) -> Attribution:
    """A weight of a script, or what a frame shows being made that is as large: its moment or its gradient."""
    states = (
        tensor for tensor in tensors() if not tensor.bytes and tensor.group in ("optimizer_states", "gradients") and event.shows_source
    )
    shown = next((tensor for tensor in states if tensor.agrees(event)), None)
    if shown is None:
        return made
    name = phrase(
        "ledger.tensor_shape",
        tensor=phrase(f"ledger.{shown.key}", left=same("")),
        shape=same(made.numbers.rpartition("*")[0].replace("*", " x ")),
    )
    return made._replace(
        tensor=name, group=shown.group, key=f"ledger.{shown.key}", lowered_by=dict(shown.lowered), avoided_by=shown.avoided
    )


def _of_operation(text: str) -> Tensor | None:
    """What the name of an operation says of a tensor of any device: a weight, a state, scores; None of a mere result."""
    entries = (tensor for tensor in printed_tensors() if tensor.memory == "card" and tensor.printed)
    named = next((tensor for tensor in entries if any(finds(pattern, text) for pattern in tensor.printed)), None)
    return named if named is not None and named.group not in ("activations", "unknown") else None


def supposed_tensor(book: FactBook, event: Event, index: int) -> Attribution | None:
    """What a network that a script sets up by constants of its own would make of the requested size; nothing shows that it did."""
    for shape in _of_scripts(book):
        width = next((width for width in WIDTHS[:2] if _prints(book, shape.elements * width, event)), 0)
        text = _described(shape)
        entries = (tensor for tensor in printed_tensors() if tensor.memory == "card")
        named = next((tensor for tensor in entries if any(finds(pattern, text) for pattern in tensor.printed)), None)
        if width and named is not None and shape.name.endswith(SUPPOSED):
            made = _attribution(named, event, index, shape.elements * width, (*shape.shape, width))
            return made._replace(agrees=False, shown=False, chance=1.0)
    return None


def _of_scripts(book: FactBook) -> list[PrintedTensor]:
    if "code.tensor" not in book:
        return []
    from diagnose.adapters.python import script_tensors  # few jobs bring scripts: not loaded at start

    return script_tensors.told(book)


def said_tensor(event: Event, index: int) -> Attribution | None:
    """What the words of the message, or of the lines below it, say that was asked for."""
    said = next((tensor for tensor in printed_tensors() if any(finds(pattern, event.lines) for pattern in tensor.says)), None)
    return _attribution(said, event, index, event.requested.bytes, None) if said is not None and event.requested is not None else None


def _described(printed: PrintedTensor) -> str:
    """Name and shape, and which side is the vocabulary of a known model."""
    vocabulary = catalogue.every_vocabulary()
    side = " last" if len(printed.shape) > 1 and printed.shape[-1] in vocabulary else " first" if printed.shape[0] in vocabulary else ""
    return f"{printed.name} [{','.join(map(str, printed.shape))}]{side}"


def _overlaps(book: FactBook, name: str, event: Event) -> bool:
    size, requested = book.size(name), event.requested
    return size is not None and requested is not None and size.bytes > 0 and size.low <= requested.high and requested.low <= size.high


def _prints(book: FactBook, size: int, event: Event) -> bool:
    """Whether a tensor of so many bytes would print as the request. Without an allocator that rounds it is the request."""
    requested = event.requested
    if requested is None or not families.of(event.family).allocator:
        return requested is not None and requested.low <= size <= requested.high
    return any(prints_as(size, requested, kind) and not is_ambiguous_block(requested, kind) for kind in allocators(book, event))


def _attribution(tensor: Tensor, event: Event, index: int, size: int, factors: tuple[int, ...] | None) -> Attribution:
    name = phrase(f"ledger.{tensor.key}")
    shape = same(" x ".join(f"{side}" for side in factors[:-1])) if factors else None
    return shown_tensor(
        tensor,
        index,
        phrase("ledger.tensor_shape", tensor=name, shape=shape) if shape else name,
        size,
        numbers="*".join(map(str, factors)) if factors else "",
        block_bytes=event.requested.bytes if event.requested else size,
        by_frame=not factors,
        chance=0.0,
        rows=factors[0] if factors and len(factors) > 4 else None,
        lowered_by={knob: power for knob, power in tensor.lowered.items() if not (factors and factors[0] == 1 and knob == ROWS)},
        avoided_by=tensor.avoided,
    )


def shown_tensor(tensor: Tensor, index: int, name: Text, size: int, **others: Any) -> Attribution:
    """A tensor that the log shows or says, by no formula, for the event of this index and so many bytes; never exact."""
    told: dict[str, Any] = {"group": tensor.group, "numbers": "", "block_bytes": size, "by_frame": True, **others}
    told["phase"] = tensor.phases[0] if len(tensor.phases) == 1 else ""
    return Attribution(
        event=index,
        key=f"ledger.{tensor.key}",
        tensor=name,
        formula="",
        bytes=size,
        exact=False,
        coincidence=0,
        agrees=True,
        shown=True,
        **told,
    )
