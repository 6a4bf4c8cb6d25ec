"""Which single tensors of this run would print as the failed request."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, isqrt

from diagnose import catalogue
from diagnose.budget.allocator import block, nameless, prints_as, window
from diagnose.budget.failure import scores
from diagnose.budget.formula import Number, Span, formula
from diagnose.budget.known import table
from diagnose.budget.ledger import Attribution, Ledger
from diagnose.budget.moments import evaluating, scoring
from diagnose.budget.roles import roles
from diagnose.budget.setup import Setup, setup
from diagnose.budget.tensors import Tensor, possible, tensors
from diagnose.facts import FactBook
from diagnose.parse.event import Event
from diagnose.phrases import Text, phrase, same
from diagnose.record import record
from diagnose.units import Size

#: Attributions worth reporting; what follows them is coincidence.
MOST = 6

#: A pickled list may be this much larger than its tensors: texts and the pickle's own frame.
PICKLED = 0.1


@record
class Candidate:
    """A tensor in numbers. `solved`: its length is what the request implies; `span`: the token counts that print alike;
    `vocabulary`: another vocabulary than this model's."""

    tensor: Tensor
    symbols: str
    values: dict[str, Number]
    bytes: int
    solved: bool = False
    span: tuple[int, int] = (0, 0)
    vocabulary: int = 0

    @property
    def tokens(self) -> int | None:
        """Tokens of the forward, where the formula has them."""
        letters = formula(self.symbols).names
        if self.tensor.solve == "any" or "G" in letters or not {"T", "B"} & set(letters) or "T" not in self.values:
            return None
        return int(self.values["T"])  # type: ignore[arg-type]


def attribute(book: FactBook, ledgers: tuple[Ledger, ...], event: Event, index: int) -> tuple[Attribution, ...]:
    """The tensors whose block prints as the request, best first: frame and phase fit, then exact products of what is known,
    then lengths solved from the request. None for 2.00 and 20.00 MiB, which stand for any small tensor."""
    if event.requested is None or nameless(event.requested, event.family) or not event.family.startswith("torch"):
        return ()
    job = _job(book, ledgers, event)
    if job is None:
        return ()
    requested, family = event.requested, event.family
    values = {**_asked(job, event).values, **_more(job)}
    chosen = [tensor for tensor in tensors() if possible(tensor, job)]
    exact = [made for tensor in chosen for made in _exact(tensor, values, requested, family)]
    if not exact and not event.frames and (other := scoring(job)) is not None:  # nothing says which forward it was
        exact = [made for tensor in chosen for made in _exact(tensor, {**values, **other.values}, requested, family)]
    if not any(made.tensor.agrees(event) for made in exact):
        solved = [made for tensor in chosen for made in _solved(tensor, values, requested, family, event)]
        solved += [made for tensor in chosen if tensor.solve == "n" for made in _patches(tensor, values, requested, family, event)]
        if event.frames and not any(made.tensor.agrees(event) for made in solved):  # a cap that is not enforced
            free = {name: value for name, value in values.items() if name != "s"}
            longer = [made for tensor in chosen for made in _solved(tensor, free, requested, family, event) if tensor.agrees(event)]
            solved = longer or solved
        exact += _beside(solved, exact, event)
    found = sorted(exact, key=lambda made: _order(made, event))
    found += _twins(found, [tensor for tensor in chosen if tensor.phase_fits(event.phase)], requested, family)
    alike = sum(not made.tensor.at_least for made in found)
    found += _vocabularies(found, job, requested, family)
    fitting = [made for made in found if made.tensor.phase_fits(event.phase)] or found
    return tuple(_attribution(made, event, index, alike) for made in fitting[:MOST])


def _job(book: FactBook, ledgers: tuple[Ledger, ...], event: Event) -> Setup | None:
    """The role that the event names, else the one whose ledger comes first; an engine's tensors are not ours to know."""
    cast = roles(book)
    named = event.role or (ledgers[0].role if ledgers else "")
    role = next((role for role in cast if role.name == named), cast[0])
    return setup(book, role) if role.name != "engine" else None


def _beside(solved: list[Candidate], exact: list[Candidate], event: Event) -> list[Candidate]:
    """The solved lengths worth saying: those that the traceback shows with their kin, else any, where no product of what is
    known prints alike. A length can be found for every tensor, so that alone it says nothing."""
    shown = {made.tensor.group for made in solved if made.tensor.agrees(event)}
    there = {made.tensor.key for made in exact}
    return [made for made in solved if made.tensor.key not in there and (made.tensor.group in shown or (not shown and not exact))]


def _asked(job: Setup, event: Event) -> Setup:
    """In evaluation the rows are those of evaluation, where rollouts are scored those of scoring."""
    if event.phase == "eval":
        return evaluating(job) or job
    return scoring(job) or job if scores(job.book) else job


def _order(made: Candidate, event: Event) -> tuple[bool, bool, bool, bool]:
    """What frame and phase speak for first; where no frame does, a whole product before one that leaves a token out."""
    shifted = not event.frames and "(s - 1)" in made.symbols
    return (not made.tensor.agrees(event), made.solved, not made.tensor.phase_fits(event.phase), shifted)


def _more(job: Setup) -> dict[str, Number]:
    """Letters that only attribution needs: bucket, sub-group, images, samples, evaluation rows."""
    defaults = table()["deepspeed"]
    more: dict[str, Number] = {
        "R": job.book.count("zero.reduce_bucket") or defaults["reduce_bucket"],
        "S": job.book.count("zero.sub_group") or defaults["sub_group"],
    }
    pixels, tower = job.book.count("data.image_pixels"), job.model.vision if job.model else None
    if tower is not None:
        more |= {"a_v": tower.heads, "h_v": tower.hidden, "f_v": tower.width}
        if pixels:
            more["n_v"] = pixels * (job.book.count("data.images_per_sample") or 1) // tower.patch**2
    rows, prompts, ranks = job.book.count("eval.batch_size"), job.book.count("rollout.batch"), job.sharding.ranks
    if rows:
        more["b_e"] = rows
    made = job.book.count("rollout.completion_len")
    if made and "G" not in job.values:  # the prompts are not bounded, the completions are
        more["G"] = made
    if prompts and ranks:
        more["n"] = prompts * (job.book.count("rollout.num_generations") or 1) // max(1, ranks // job.sharding.context)
    return more


def _value(symbols: str, values: dict[str, Number]) -> int | None:
    """The bytes of a formula; None where a letter is unknown or known only as a range."""
    made = formula(symbols)
    if any(name not in values or isinstance(values[name], Span) for name in made.names):
        return None
    number = made.evaluate(values)
    return None if isinstance(number, Span) else ceil(number)


def _exact(tensor: Tensor, values: dict[str, Number], requested: Size, family: str) -> list[Candidate]:
    """The first formula of a tensor whose block prints as the request with the lengths as they are set."""
    for symbols in tensor.bytes:
        size = _value(symbols, values)
        if size is None or size <= 0:
            continue
        if tensor.at_least:
            if size <= requested.high and requested.low <= size * (1 + PICKLED):
                return [Candidate(tensor, symbols, values, size)]
        elif prints_as(size, requested, family):
            return [Candidate(tensor, symbols, values, size)]
    return []


def _vocabularies(found: list[Candidate], job: Setup, requested: Size, family: str) -> list[Candidate]:
    """The best one's kin with another vocabulary of the same family of models, where that prints alike: a tokenizer may have
    fewer entries than the head has rows."""
    best = found[0] if found else None
    if best is None or job.model is None or "V" not in formula(best.symbols).names:
        return []
    kin: list[Candidate] = []
    for rows in catalogue.vocabularies(job.model.family) - {job.model.V}:
        values: dict[str, Number] = {**best.values, "V": rows}
        alike = [
            made for symbols in best.tensor.bytes for made in _exact(replace(best.tensor, bytes=(symbols,)), values, requested, family)
        ]
        kin += sorted(alike, key=lambda made: -made.bytes)[:1]
    return [replace(made, vocabulary=int(made.values["V"])) for made in kin]  # type: ignore[arg-type]


def _twins(found: list[Candidate], chosen: list[Tensor], requested: Size, family: str) -> list[Candidate]:
    """Tensors of the best one's kind that print alike at half or twice its length: another width per element."""
    best = found[0] if found else None
    length = best.values.get("s") if best else None
    if best is None or best.tokens is None or not isinstance(length, int):
        return []
    there = {made.tensor.key for made in found}
    twins: list[Candidate] = []
    for tensor in chosen:
        if tensor.group != best.tensor.group or tensor.key in there or not tensor.solve:
            continue
        for other in (2 * length, length // 2):
            rows = int(best.values["B"])  # type: ignore[arg-type]
            values: dict[str, Number] = {**best.values, "s": other, "T": rows * other}
            twins += [replace(made, solved=True, span=(rows * other, rows * other)) for made in _exact(tensor, values, requested, family)][
                :1
            ]
    return twins


def _solved(tensor: Tensor, values: dict[str, Number], requested: Size, family: str, event: Event) -> list[Candidate]:
    """The tensor at the length that the request implies, at most the cap; only where frame or phase speak for it."""
    if tensor.solve in ("", "n") or not tensor.phase_fits(event.phase) or not isinstance(values.get("B"), int):
        return []
    rows, cap = int(values["B"]), values.get("s")  # type: ignore[arg-type]
    if tensor.solve == "any":  # accumulated over batches: neither rows nor cap bound it
        rows, cap = 1, None
    low, high = window(requested, family)
    for symbols in tensor.bytes:
        if not {"T", "s"} & set(formula(symbols).names) or "G" in formula(symbols).names:
            continue
        each = _value(symbols.replace("(s - 1)", "s"), {**values, "T": 1, "s": 1})
        if not each:
            continue
        first, last = _lengths(symbols, each, rows, low, high)
        last = min(last, int(cap)) if isinstance(cap, int) else last
        if first <= last and first > 0:
            length = _roundest(first, last)
            settled: dict[str, Number] = {**values, "B": rows, "s": length, "T": rows * length}
            size = _value(symbols, settled)
            if size is not None and prints_as(size, requested, family):
                span = (-(-low // each), high // each) if "T" in symbols else (rows * first, rows * last)
                return [Candidate(tensor, symbols if tensor.solve == "any" else symbols.replace("T", "B*s"), settled, size, True, span)]
    return []


def _patches(tensor: Tensor, values: dict[str, Number], requested: Size, family: str, event: Event) -> list[Candidate]:
    """Patches by patches at the number of patches that the request implies, where it is more than the decoder's scores can be."""
    decoder = _value("4*B*a*s*s", values)
    if not tensor.agrees(event) or (decoder is not None and decoder >= requested.low):
        return []
    low, high = window(requested, family)
    for symbols in tensor.bytes:
        each = _value(symbols, {**values, "n_v": 1})
        if not each:
            continue
        first, last = _lengths("s*s", each, 1, low, high)
        if 0 < first <= last:
            settled: dict[str, Number] = {**values, "n_v": _roundest(first, last)}
            return [Candidate(tensor, symbols, settled, _value(symbols, settled) or 0, True, (first, last))]
    return []


def _lengths(symbols: str, each: int, rows: int, low: int, high: int) -> tuple[int, int]:
    """Row lengths whose tensor lies between two byte counts; `each` is the tensor of one token (of one token per row)."""
    if "T" in symbols:
        return -(-low // (each * rows)), high // (each * rows)
    if "s*s" in symbols:
        root = isqrt(-(-low // each))
        return (root if root * root * each >= low else root + 1), isqrt(high // each)
    shift = 1 if "(s - 1)" in symbols else 0
    return -(-low // each) + shift, high // each + shift


def _roundest(first: int, last: int) -> int:
    """The length divisible by the highest power of two: batches are padded to multiples of 8 or 64, caps are round."""
    power = 1
    while -(-first // (2 * power)) * 2 * power <= last:
        power *= 2
    return -(-first // power) * power


def _attribution(made: Candidate, event: Event, index: int, alike: int) -> Attribution:
    agrees = made.tensor.agrees(event)
    return Attribution(
        event=index,
        key=f"ledger.{made.tensor.key}",
        tensor=_named(made),
        group=made.tensor.group,
        formula=made.symbols,
        numbers=formula(made.symbols).figures(made.values),
        bytes=made.bytes,
        block_bytes=block(made.bytes, event.family),
        exact=not made.tensor.at_least,
        coincidence=max(0, alike - (not made.tensor.at_least)),
        agrees=agrees,
        at_least=made.tensor.at_least,
        tokens=made.tokens,
        solved=made.solved,
        span=made.span if made.solved and made.tokens is not None and made.span[0] < made.span[1] else None,
    )


def _named(made: Candidate) -> Text:
    """The tensor with its rows and tokens."""
    name = phrase(f"ledger.{made.tensor.key}")
    rows, length = made.values.get("B"), made.values.get("s")
    if made.vocabulary:
        return phrase("ledger.tensor_vocabulary", tensor=name, vocabulary=same(f"{made.vocabulary:,}"))
    if made.solved and made.tensor.solve == "n":
        return phrase("ledger.tensor_patches", tensor=name, low=same(f"{made.span[0]:,}"), high=same(f"{made.span[1]:,}"))
    if made.solved and made.tensor.solve == "any":
        return phrase("ledger.tensor_tokens", tensor=name, low=same(f"{made.span[0]:,}"), high=same(f"{made.span[1]:,}"))
    if made.tokens is None or not isinstance(rows, int) or not isinstance(length, int) or "G" in formula(made.symbols).names:
        return name
    if made.solved and made.span[0] < made.span[1]:
        around = same(f"{length:,}" if rows == 1 else f"{rows} x {length:,}")
        return phrase("ledger.tensor_window", tensor=name, tokens=around)
    return phrase("ledger.tensor_rows", tensor=name, rows=same(str(rows)), tokens=same(f"{length:,}"))
