"""The sides of a tensor that a frame alone names, or that nothing names: by the weights of known models, and by what texts write out."""

from __future__ import annotations

from collections.abc import Sequence

from diagnose import families, rule_files
from diagnose.budget.attribution import known_weights, text_products
from diagnose.budget.attribution.tensor_table import Tensor, every_tensor
from diagnose.budget.attribution.text_products import Asked, Product
from diagnose.budget.attribution.told_by_log import shown_tensor
from diagnose.budget.model.block_rounding import EXACT, allocators, is_ambiguous_block, window
from diagnose.budget.model.ledger import Attribution
from diagnose.facts import FactBook
from diagnose.parse.facts import text_figures
from diagnose.parse.model.event import Event
from diagnose.phrases import Text, phrase, same

#: Phases in which weights are made or written.
_OF_WEIGHTS = ("model_load", "init", "checkpoint_save", "weight_sync")
#: Groups of what a frame shows, by what the sides are looked for.
_SHOWS = {"weights": "weight", "optimizer_states": "weight", "rollout_engine": "weight", "attention_scores": "scores"}
#: Entries of frames that join rows, and those that make maps of pictures.
_JOINED, _MAPS = ("f_joined", "f_prediction"), ("f_map", "f_feature", "t_feature_map")
#: Bytes of a page of tcmalloc, to which it rounds up what it tells of.
PAGE = 8192
#: A weight of a model whose family nothing shows is named below this chance.
UNSHOWN = 0.2
#: The innermost frames whose statements tell which weight it is.
_INNERMOST = 3


def with_sides(found: Sequence[Attribution], book: FactBook, event: Event, index: int) -> tuple[Attribution, ...]:
    """The attributions, the first with the sides of its tensor; where there is none, one of known sides."""
    first = found[0] if found else None
    asked = _asked(book, event, _shows(first, event))
    product = _product(book, event, asked) if asked is not None else None
    if product is None:
        return tuple(found)
    if first is None:
        entry = _entry("p_known_weight" if product.kind in ("weight", "square") else "p_feature" if product.kind == "map" else "p_of_text")
        return (_made(entry, product, event, index),)
    named = first._replace(
        tensor=_named(first.tensor, product),
        numbers=_numbers(product),
        bytes=product.bytes,
        by_frame=False,
        chance=product.chance,
    )
    return (named, *found[1:])


def _product(book: FactBook, event: Event, asked: Asked) -> Product | None:
    told = text_figures.told(book)
    if asked.shows != "weight" or "model.shape" in book:
        return text_products.best(told, asked)
    frames, on_host = event.frames[-_INNERMOST:], families.of(event.family).memory == "host"
    statements = "\n".join([*(frame.statement for frame in frames), event.source_line, event.lines])
    known = known_weights.weight(
        asked, statements, [*told.networks, book.word("model.family") or ""], on_host, book.size("hardware.capacity")
    )
    if known is not None and known.model and not known.is_shown:
        return text_products.of_networks(told, asked) or text_products.best(told, asked) or (known if known.chance < UNSHOWN else None)
    return text_products.of_networks(told, asked) or known or text_products.best(told, asked)


def _shows(first: Attribution | None, event: Event) -> str:
    """What the frames show of the tensor: a `weight`, a `map`, `scores`, `joined` rows, `any` other; `nothing`."""
    if first is None:
        return "weight" if event.phase in _OF_WEIGHTS else "nothing"
    key = first.key.removeprefix("ledger.")
    if key in _JOINED:
        return "joined"
    if key in _MAPS:
        return "map"
    group = next((entry.group for entry in every_tensor() if entry.key == key), first.group)
    return _SHOWS.get(group, "any")


def _asked(book: FactBook, event: Event, shows: str) -> Asked | None:
    """The bytes that print as the request. None where any small tensor does."""
    requested = event.requested
    if requested is None or not requested.bytes:
        return None
    kinds = allocators(book, event) if families.of(event.family).allocator else (EXACT,)
    if any(is_ambiguous_block(requested, kind) for kind in kinds):
        return None
    low, high = window(requested, kinds[0])
    if families.of(event.family).kill:  # what tcmalloc told before is whole pages
        low = high - PAGE + 1
    return Asked(low, high, shows) if low <= high else None


def _made(entry: Tensor, product: Product, event: Event, index: int) -> Attribution:
    on_host = families.of(event.family).memory == "host"
    name = _named(phrase(f"ledger.{entry.key}"), product)
    made = shown_tensor(
        entry,
        index,
        phrase("ledger.host_tensor", tensor=name) if on_host else name,
        product.bytes,
        group=rule_files.table("vocabulary")["fills_host"][0] if on_host else entry.group,
        numbers=_numbers(product),
        by_frame=False,
        chance=product.chance,
        lowered_by={} if on_host else dict(entry.lowered),
    )
    return made._replace(shown=False, agrees=False)


def _named(name: Text, product: Product) -> Text:
    shape = same(" x ".join(map(str, product.sides)))
    if product.model:
        return phrase("ledger.tensor_of_model", tensor=name, shape=shape, model=same(product.model))
    return phrase("ledger.tensor_shape", tensor=name, shape=shape)


def _numbers(product: Product) -> str:
    return "*".join(map(str, (*product.sides, product.width)))


def _entry(key: str) -> Tensor:
    return next(tensor for tensor in every_tensor() if tensor.key == key)
