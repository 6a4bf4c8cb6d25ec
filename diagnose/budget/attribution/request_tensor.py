"""Which single tensors of this run would print as the failed request."""

from __future__ import annotations

from diagnose import catalogue
from diagnose.budget.attribution import engine_letters
from diagnose.budget.attribution.coincidence import alike
from diagnose.budget.attribution.snapshot_request import narrowed, told
from diagnose.budget.attribution.tensor_candidate import Candidate, Query, exact, query
from diagnose.budget.attribution.tensor_table import Tensor, possible, tensors
from diagnose.budget.attribution.unknown_solver import padded, patches, solved
from diagnose.budget.model.allocator import allocators, block, nameless
from diagnose.budget.model.formulas import Number, formula
from diagnose.budget.model.job_roles import engine, roles
from diagnose.budget.model.ledger import Attribution, Ledger
from diagnose.budget.model.precisions import WIDTH
from diagnose.budget.model.role_setup import Setup, setup
from diagnose.budget.model.software_table import table
from diagnose.budget.moments.failure_moment import scores
from diagnose.budget.moments.other_passes import evaluating, scoring
from diagnose.budget.terms.chunked_loss import chunk_rows
from diagnose.facts import FactBook
from diagnose.parse.model.event import Event
from diagnose.phrases import Text, phrase, same
from diagnose.record import replace

#: Attributions worth reporting; what follows them is coincidence.
MOST = 6


def attribute(book: FactBook, ledgers: tuple[Ledger, ...], event: Event, index: int) -> tuple[Attribution, ...]:
    """The tensors whose block prints as the request, best first: frame and phase fit, then exact products of what is known,
    then lengths solved from the request. None for 2.00 and 20.00 MiB, which stand for any small tensor."""
    if event.requested is None or not event.family.startswith("torch"):
        return ()
    requested = event.requested
    kinds = [kind for kind in allocators(book, event) if told(book, requested, kind) or not nameless(requested, kind)]
    job = _job(book, ledgers, event) if kinds else None
    if job is None:
        return ()
    answers: list[list[Attribution]] = []
    values = engine_letters.letters(job) if job.role.name == "engine" else {**_asked(job, event).values, **_more(job)}
    chosen = [tensor for tensor in tensors() if possible(tensor, job, event)]
    for kind in kinds:
        asked = narrowed(query(event, requested, kind, _widths(job, event)), book)
        answers.append([_attribution(made, asked, index, count) for made, count in _found(job, chosen, values, asked)])
    best = max(answers, key=_weight)
    return tuple(best)


def _weight(found: list[Attribution]) -> tuple[bool, bool, bool]:
    """What speaks for an allocator: a tensor that the traceback shows and the settings give, then one that it shows, then any."""
    best = found[0] if found else None
    shown = best is not None and best.agrees
    return (shown and best is not None and not best.solved and not best.against, shown, best is not None)


def _found(job: Setup, chosen: list[Tensor], values: dict[str, Number], asked: Query) -> list[tuple[Candidate, int]]:
    """The candidates worth telling, best first, each with the number of other readings of the request."""
    found = _matching(job, chosen, values, asked)
    if not found:
        return []
    fitting = [tensor for tensor in chosen if asked.fits(tensor)]
    found += _twins(found, fitting, asked)
    count = alike(found, values, asked)
    found += _vocabularies(found, job, asked)
    there = [made for made in found if asked.fits(made.tensor)] or found
    return [(made, max(0, count - (not made.tensor.at_least))) for made in there[:MOST]]


def _matching(job: Setup, chosen: list[Tensor], values: dict[str, Number], asked: Query) -> list[Candidate]:
    """Products of what is set; where frame and phase speak for none of them, lengths solved from the request beside them."""
    found = [made for tensor in chosen for made in exact(tensor, values, asked)]
    if not found and not asked.event.frames and (other := scoring(job)) is not None:  # nothing says which forward it was
        found = [made for tensor in chosen for made in exact(tensor, {**values, **other.values}, asked)]
    if not any(asked.agrees(made.tensor) and not made.against for made in found):
        lengths = [made for tensor in chosen for made in solved(tensor, values, asked)]
        lengths += [made for tensor in chosen if tensor.solve == "n" for made in patches(tensor, values, asked)]
        lengths += [made for tensor in chosen if tensor.solve == "p" for made in padded(tensor, values, asked)]
        if asked.event.frames and not any(asked.agrees(made.tensor) for made in (*lengths, *found)):  # a cap that is not enforced
            free = {name: value for name, value in values.items() if name != "s"}
            longer = [made for tensor in chosen if asked.agrees(tensor) for made in solved(tensor, free, asked)]
            lengths = longer or lengths
        found += _beside(lengths, found, asked)
    return sorted(found, key=lambda made: _order(made, asked))


def _job(book: FactBook, ledgers: tuple[Ledger, ...], event: Event) -> Setup:
    """The role that the event names, else the one whose ledger comes first."""
    cast = roles(book)
    named = event.role or (ledgers[0].role if ledgers else "")
    if named == "engine":
        return setup(book, engine(book, book.shape("model.shape")))  # whatever precision its weights have
    return setup(book, next((role for role in cast if role.name == named), cast[0]))


#: Phases in which weights are as wide as they were loaded, whatever an engine makes of them afterwards.
LOADING = ("model_load", "init")


def _widths(job: Setup, event: Event) -> dict[str, int]:
    """Bytes per element of what follows the run's precision, where the settings say. Left out where both widths occur: autocast
    casts weights and gradients to and fro, FSDP and an accumulation in fp32 keep gradients of another width than backward makes."""
    book, held = job.book, job.precision
    said = book.fact("train.precision")
    if job.role.name == "engine" or said is None or said.origin == "default" or book.word("model.quantization") not in (None, "none"):
        return {}
    loaded = WIDTH.get(book.word("train.load_dtype") or "")
    each = {"compute": held.compute, "weight": loaded if event.phase in LOADING else None if held.autocast else held.weight}
    plain = job.sharding.scheme in ("single", "ddp", "zero1", "zero2", "zero3") and "zero.grad_accum_dtype" not in book
    if plain and not held.autocast and not job.trainable.lora:
        each["gradient"] = held.gradient
    return {name: width for name, width in each.items() if isinstance(width, int) and width in (2, 4)}


def _beside(lengths: list[Candidate], found: list[Candidate], asked: Query) -> list[Candidate]:
    """The solved lengths worth saying: those that the traceback shows with their kin, else any, where no product of what is
    known prints alike. A length can be found for every tensor, so that alone it says nothing."""
    shown = {made.tensor.group for made in lengths if asked.agrees(made.tensor)}
    there = {made.tensor.key for made in found if not made.against}
    return [made for made in lengths if made.tensor.key not in there and (made.tensor.group in shown or (not shown and not found))]


def _asked(job: Setup, event: Event) -> Setup:
    """In evaluation the rows are those of evaluation, where rollouts are scored those of scoring."""
    if event.phase == "eval":
        return evaluating(job) or job
    return scoring(job) or job if scores(job.book) else job


def _order(made: Candidate, asked: Query) -> tuple[bool, bool, bool, bool, bool]:
    """What frame and phase speak for first, then what has the width that the settings give; where no frame speaks, a whole product
    before one that leaves a token out."""
    shifted = not asked.event.frames and "(s - 1)" in made.symbols
    return (not asked.agrees(made.tensor), made.against is True, made.solved, not asked.fits(made.tensor), shifted)


def _more(job: Setup) -> dict[str, Number]:
    """Letters that only attribution needs: bucket, sub-group, images, samples, evaluation rows."""
    defaults = table()["zero_defaults"]
    more: dict[str, Number] = {
        "R": job.book.count("zero.reduce_bucket") or defaults["reduce_bucket"],
        "S": job.book.count("zero.sub_group") or defaults["sub_group"],
    }
    if job.knows("T", "V", "h") and isinstance(job.values["T"], int):
        more["R_c"] = chunk_rows(job)
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


def _vocabularies(found: list[Candidate], job: Setup, asked: Query) -> list[Candidate]:
    """The best one's kin with another vocabulary of the same family of models, where that prints alike: a tokenizer may have
    fewer entries than the head has rows."""
    best = found[0]
    if job.model is None or "V" not in formula(best.symbols).names:
        return []
    kin: list[Candidate] = []
    for rows in catalogue.vocabularies(job.model.family) - {job.model.V}:
        values: dict[str, Number] = {**best.values, "V": rows}
        others = [made for symbols in best.tensor.bytes for made in exact(replace(best.tensor, bytes=(symbols,)), values, asked)]
        kin += sorted(others, key=lambda made: -made.bytes)[:1]
    return [replace(made, vocabulary=int(made.values["V"]), solved=best.solved) for made in kin]  # type: ignore[arg-type]


def _twins(found: list[Candidate], chosen: list[Tensor], asked: Query) -> list[Candidate]:
    """Tensors of the best one's kind that print alike at half or twice its length: another width per element."""
    best = found[0]
    length = best.values.get("s")
    if best.tokens is None or not isinstance(length, int):
        return []
    there = {made.tensor.key for made in found}
    twins: list[Candidate] = []
    for tensor in chosen:
        if tensor.group != best.tensor.group or tensor.key in there or not tensor.solve:
            continue
        for other in (2 * length, length // 2):
            rows = int(best.values["B"])  # type: ignore[arg-type]
            values: dict[str, Number] = {**best.values, "s": other, "T": rows * other}
            span = (rows * other, rows * other)
            twins += [replace(made, solved=True, span=span) for made in exact(tensor, values, asked)][:1]
    return twins


def _attribution(made: Candidate, asked: Query, index: int, others: int) -> Attribution:
    told = made.solved and (made.tokens is not None or made.tensor.solve == "p")
    return Attribution(
        event=index,
        key=f"ledger.{made.tensor.key}",
        tensor=_named(made),
        group=made.tensor.group,
        formula=made.symbols,
        numbers=formula(made.symbols).figures(made.values),
        bytes=made.bytes,
        block_bytes=block(made.bytes, asked.kind),
        exact=not made.tensor.at_least,
        coincidence=others,
        agrees=asked.agrees(made.tensor),
        at_least=made.tensor.at_least,
        tokens=made.tokens,
        solved=made.solved,
        span=made.span if told and made.span[0] < made.span[1] else None,
        padded=made.tensor.solve == "p",
        width=made.tensor.width(made.symbols),
        against=made.against,
    )


def _named(made: Candidate) -> Text:
    """The tensor with its rows and tokens."""
    name = phrase(f"ledger.{made.tensor.key}")
    rows, length = made.values.get("B"), made.values.get("s")
    if made.vocabulary:
        return phrase("ledger.tensor_vocabulary", tensor=name, vocabulary=same(f"{made.vocabulary:,}"))
    if made.solved and made.tensor.solve == "n":
        return phrase("ledger.tensor_patches", tensor=name, low=same(f"{made.span[0]:,}"), high=same(f"{made.span[1]:,}"))
    if made.solved and made.tensor.solve in ("any", "p"):
        return phrase("ledger.tensor_tokens", tensor=name, low=same(f"{made.span[0]:,}"), high=same(f"{made.span[1]:,}"))
    if made.tokens is None or not isinstance(rows, int) or not isinstance(length, int) or "G" in formula(made.symbols).names:
        return name
    if made.solved and made.span[0] < made.span[1]:
        around = same(f"{length:,}" if rows == 1 else f"{rows} x {length:,}")
        return phrase("ledger.tensor_window", tensor=name, tokens=around)
    return phrase("ledger.tensor_rows", tensor=name, rows=same(str(rows)), tokens=same(f"{length:,}"))
