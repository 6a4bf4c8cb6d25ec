"""Facts derived from ledger and attribution, which no single source states."""

from __future__ import annotations

from dataclasses import replace

from diagnose import catalogue
from diagnose.budget.attribution.failed_tensor import identity
from diagnose.budget.derived.drawing_facts import facts_of_drawing
from diagnose.budget.derived.implied_by_request import implied_facts
from diagnose.budget.derived.implied_lengths import length_facts
from diagnose.budget.derived.log_comparison import comparison_facts
from diagnose.budget.derived.message_facts import facts_of_message
from diagnose.budget.derived.setting_doubts import ledger_facts, missed_savings, setting_facts
from diagnose.budget.derived.weights_as_loaded import loaded_weights, reads_files
from diagnose.budget.model.ledger import Attribution, Ledger, Moment, total
from diagnose.budget.model.trainable_params import tuning
from diagnose.budget.moments import failure_moment
from diagnose.budget.moments.host_memory import fullest_node
from diagnose.budget.terms.training_states import shardable
from diagnose.facts import Fact, FactBook, derived_fact
from diagnose.units import Size, not_negative

#: Further from the observed figure than this share, the ledger and the message do not meet.
MEETS = 0.2

#: Bytes a parameter of weights, gradients and Adam's states in mixed precision, before anything is sharded or offloaded.
ADAM = 16

#: Terms that do not depend on the batch.
STATES = ("weights", "gradients", "optimizer_states")

#: What is stored for the backward pass.
KEPT = ("activations", "attention_scores")
FIXED = (*STATES, "extra_models", "comm_buffers")
GROUPS = (*FIXED, "activations", "attention_scores", "logits", "mm_inputs")

#: Terms of a group that none of its members keeps: what an optimizer computes with, scores that the softmax replaces.
PASSING = ("step_", "scores_in_hand")

#: Bits of a weight in AWQ, GPTQ, bnb or Q4_K, scales and zeros included.
BITS_OF_FOUR = 4.5

#: Terms that appear in the course of backward.
GRADIENTS = ("gradients", "gradients_sharded", "gradients_whole")

#: What is made in the course of a moment, tensor by tensor: the request that failed may have been the first of them.
MADE_AT = {
    "forward_end": ("activations", "attention_scores", "logits", "mm_inputs"),
    "loss_call": ("logits",),
    "reference_forward": ("logits",),
    "loss_backward": ("logits",),
    "optimizer_step": ("optimizer_states",),
}


def derive_facts(book: FactBook, ledgers: tuple[Ledger, ...], attributions: tuple[Attribution, ...]) -> list[Fact]:
    """All of them, each with its formula as witness."""
    ledger = ledgers[0] if ledgers else None
    derived = [
        *facts_of_message(book),
        *_attribution_facts(attributions, book),
        *length_facts(book, attributions),
        *implied_facts(book, attributions),
        *missed_savings(book),
        *_tuning_facts(book),
        *_fewer_bits_facts(book),
        *loaded_weights(book),
        *facts_of_drawing(book),
        *setting_facts(book),
    ]
    if ledger is not None:
        derived += [*_ledger_facts(book, ledger), *_host_facts(ledgers), *comparison_facts(book, ledger), *ledger_facts(book, ledger)]
    return derived


#: Of all parameters: with fewer trained, some are frozen.
PARTLY = 0.7


def _tuning_facts(book: FactBook) -> list[Fact]:
    """What is trained, where only counts of parameters say it; and whether a sharding engine can shard the base."""
    shape = book.shape("model.shape")
    word = tuning(book, shape.params if shape else None)
    silent = word is not None and "train.finetuning" not in book
    tuning_facts = [derived_fact("train.finetuning", word, "few trained parameters, or a quantised base")] if silent else []
    trained, total = book.count("model.trainable_params"), book.count("model.total_params")
    if trained and total:
        tuning_facts.append(derived_fact("model.partly_trained", trained < PARTLY * total, f"{trained:,} of {total:,} parameters"))
    params = total or book.count("model.least_params")
    if params:
        tuning_facts.append(derived_fact("model.weights_in_16_bits", Size.exactly(2 * params), f"2 bytes * {params:,} parameters"))
    known = max(book.count("parallel.world") or 0, book.count("hardware.count") or 0)
    params, cards = params or _named_params(book), known or 1
    if params and book.word("model.quantization") in (None, "none"):
        tuning_facts.append(_share("model.least_weights", 2, params, cards))
    if params and (word or book.word("train.finetuning")) in (None, "full"):
        tuning_facts.append(_share("model.full_states", ADAM, params, 1))
        if known:  # what is trained whole is spread over cards: nobody can say what one of unknown many holds
            tuning_facts.append(_share("model.least_states", ADAM, params, cards))
    return [*tuning_facts, derived_fact("model.shardable", shardable(book), "a quantised base needs a storage type that can be flattened")]


def _share(name: str, width: int, params: int, cards: int) -> Fact:
    """What each card holds of so many bytes a parameter, if all cards share it."""
    return derived_fact(
        name, Size.exactly(width * params // cards), f"{width} bytes * {params:,} parameters{f' / {cards}' if cards > 1 else ''}"
    )


def _named_params(book: FactBook) -> int | None:
    """The parameters (at least) of the one model that a page on training names, which says of it nothing else."""
    named = {catalogue.model(str(fact.value)) or str(fact.value) for fact in book.all("report.model")}
    if len(named) != 1:
        return None
    model = named.pop()
    if not isinstance(model, str):
        return model.params
    sizes = catalogue.params_of_name(model)
    return sizes[0] if sizes else None


def _fewer_bits_facts(book: FactBook) -> list[Fact]:
    """What weights that are only read take on each card in 16 bits and in 4 (embedding and head keep 16); none where they are quantised,
    as files of GGUF mostly are. A name that tells no more than the count of parameters tells the least that they take in 16 bits."""
    shape, cards = book.shape("model.shape"), book.count("rollout.tensor_parallel") or 1
    if "gguf" in (book.word("model.path") or "").lower() or reads_files(book):
        return []
    if book.word("model.quantization") not in (None, "none") or book.word("rollout.quantization") is not None:
        return []
    if shape is None:
        params = book.count("model.least_params")
        return [derived_fact("rollout.weights_in_16_bits", Size.exactly(2 * params // cards), "2*P/t_e")] if params else []
    kept = shape.V * shape.h * (1 if shape.tied else 2)
    whole, quantised = 2 * shape.params // cards, (2 * kept + (shape.params - kept) * BITS_OF_FOUR // 8) // cards
    return [
        derived_fact("rollout.weights_in_16_bits", Size.exactly(whole), "2*P/t_e"),
        derived_fact("rollout.weights_in_4_bits", Size.exactly(round(quantised)), "(2*embeddings + 4.5/8*(P - embeddings))/t_e"),
        derived_fact("rollout.saved_by_4_bits", Size.exactly(max(0, whole - round(quantised))), "2*P/t_e - in 4 bits"),
    ]


def _attribution_facts(attributions: tuple[Attribution, ...], book: FactBook) -> list[Fact]:
    """The best attribution, where frame and phase support it; a size alone is reported as a coincidence."""
    best = identity(attributions, book)
    if best is not None and best.scoring:
        return [derived_fact("attribution.pass", "scoring", f"{best.formula} = {best.numbers}")]
    if not attributions or not attributions[0].agrees:
        return [] if best is None else [derived_fact("attribution.by_size", best.group, f"{best.formula} = {best.numbers}")]
    best = attributions[0]
    arithmetic = f"{best.formula} = {best.numbers}"
    powers = [derived_fact(name, round(power), arithmetic) for name, power in _powers(best).items()]
    return [
        *(powers if best.named else []),
        derived_fact("attribution.group", best.group, arithmetic),
        derived_fact("attribution.exact", best.named and not best.at_least and not best.by_frame, arithmetic),
        derived_fact("attribution.bytes", Size.exactly(best.bytes), arithmetic),
    ]


def _powers(best: Attribution) -> dict[str, float]:
    """With what power lengths, rows and images count in the tensor; 0 where a formula without them says so."""
    rows = ("train.micro_batch_size", "eval.batch_size", "rollout.logprob_batch")
    return {
        "attribution.power_of_length": best.lowered_by.get("train.max_seq_len", 0),
        "attribution.power_of_rows": max(best.lowered_by.get(knob, 0) for knob in rows),
        "attribution.power_of_pixels": max(best.lowered_by.get("data.image_pixels", 0), best.lowered_by.get("data.image_size", 0)),
    }


def _ledger_facts(book: FactBook, ledger: Ledger) -> list[Fact]:
    """Bytes per group at the failing moment; without a failure at the largest moment."""
    peak, moment = ledger.peak, ledger.moment(ledger.failing) or ledger.peak
    if peak is None or moment is None:
        return []
    derived = [
        derived_fact(f"ledger.{group}", size, _sum_terms(moment, group))
        for group in GROUPS
        if (size := _group_bytes(ledger, moment, group)) is not None
    ]
    if ledger.complete:
        derived.append(derived_fact("ledger.states", moment.of(*STATES), _sum_terms(moment, *STATES)))
        derived.append(derived_fact("ledger.kept", moment.of(*KEPT), _sum_terms(moment, *KEPT)))
        derived += [
            derived_fact("ledger.total", moment.total, _sum_terms(moment)),
            derived_fact("ledger.moment", moment.name, "moment of the failure"),
        ]
        derived += [
            derived_fact("ledger.peak", peak.total, _sum_terms(peak)),
            derived_fact("ledger.peak_moment", peak.name, "largest moment"),
        ]
        sent = ledger.whole or moment  # with the copy in which they are sent
        derived.append(derived_fact("ledger.gradients_at_peak", peak.of("gradients"), _sum_terms(peak, "gradients")))
        derived.append(derived_fact("ledger.rollout_samples", sent.of("samples"), _sum_terms(sent, "samples")))
        derived += _logits_bytes(ledger)
    if ledger.unexplained is not None and ledger.complete:
        derived.append(derived_fact("ledger.unexplained", replace(ledger.unexplained, text=""), "allocated - ledger"))
    return [*derived, *_engine_bytes(book, moment), *_compare_with_message(book, ledger), *_missing_states(ledger, moment)]


def _logits_bytes(ledger: Ledger) -> list[Fact]:
    """Logits and loss of one model at their largest: the loss call as a whole, or the start of backward."""
    moments = [ledger.moment("loss_call"), ledger.moment("loss_backward"), ledger.whole]
    best = max((moment for moment in moments if moment), key=lambda moment: moment.of("logits").bytes, default=None)
    return [] if best is None else [derived_fact("ledger.logits_at_loss", best.of("logits"), _sum_terms(best, "logits"))]


def _group_bytes(ledger: Ledger, moment: Moment, group: str) -> Size | None:
    """Bytes of a group; None where it has no term and terms may be missing."""
    present = any(term.group == group for term in moment.terms)
    if not present and not ledger.complete:
        return None
    return total([term.size for term in moment.terms if term.group == group and not term.key.startswith(PASSING)])


def _sum_terms(moment: Moment, *groups: str) -> str:
    terms = [term.symbols for term in moment.terms if (not groups or term.group in groups) and term.size.bytes]
    return f"{moment.name}: {' + '.join(terms) or '0'}"


def _engine_bytes(book: FactBook, moment: Moment) -> list[Fact]:
    """Bytes of the rollout engine on this card: a term of the ledger, a printed figure, or its share of a card that all models use."""
    if any(term.group == "rollout_engine" for term in moment.terms):
        return [derived_fact("ledger.rollout_engine", moment.of("rollout_engine"), _sum_terms(moment, "rollout_engine"))]
    in_use, share = book.size("log.engine_in_use"), book.ratio("rollout.gpu_memory_utilization")
    capacity = book.size("log.capacity") or book.size("hardware.capacity")
    if in_use is not None:
        return [derived_fact("ledger.rollout_engine", replace(in_use, text=""), "memory of the engine's process")]
    shared = book.word("rollout.placement") == "colocated" or book.switch("colocate.all")
    if not shared or share is None or capacity is None:
        return []
    asleep = book.switch("rollout.sleep") and book.switch("log.engine_awake") is not True
    return (
        [] if asleep else [derived_fact("ledger.rollout_engine", not_negative(capacity.times(share)), "gpu_memory_utilization * capacity")]
    )


def _compare_with_message(book: FactBook, ledger: Ledger) -> list[Fact]:
    """Whether ledger and message agree. More than was allocated is a contradiction only where no shorter batch explains it."""
    moment, allocated = ledger.moment(ledger.failing), ledger.observed
    if moment is None:
        return _unsharded_weights(book, ledger)
    most = allocated or _held_at_most(book)
    if most is None or (allocated is None and moment.name in ("load", "init")):
        return []
    comparison = f"{moment.name} against {'allocated' if allocated is not None else 'what the card holds'}"
    if allocated is not None and moment.name in ("load", "init"):  # states are still being built: less than the whole proves nothing
        enough = moment.total.high >= (1 - MEETS) * allocated.low
        return [derived_fact("ledger.verdict", "agrees" if enough else "below", comparison)] if ledger.complete else []
    made_groups = set(MADE_AT.get(moment.name, ()))
    alive = [term for term in moment.terms if term.group not in made_groups and term.key not in GRADIENTS]
    if total([term.size for term in alive if term.group in FIXED]).low > most.high * (1 + MEETS / 10):
        return [derived_fact("ledger.verdict", "above", comparison)]
    if not ledger.complete:
        return []
    if allocated is not None and moment.total.high < (1 - MEETS) * allocated.low:
        return [derived_fact("ledger.verdict", "below", comparison)]
    if total([term.size for term in alive]).low <= (1 + MEETS) * most.high:
        return [derived_fact("ledger.verdict", "agrees", comparison)] if allocated is not None else []
    return [derived_fact("ledger.verdict", "above", comparison)] if "data.tokens_in_batch" in book else []


def _held_at_most(book: FactBook) -> Size | None:
    """What torch has allocated at most, where the message does not say: what the process holds, else what of the card is not free."""
    capacity, free = book.size("log.capacity"), book.size("log.free")
    return book.size("log.process_in_use") or (not_negative(capacity - free) if capacity is not None and free is not None else None)


def _unsharded_weights(book: FactBook, ledger: Ledger) -> list[Fact]:
    """Verdict `above` where all weights together exceed what is allocated, though the trainer has announced its first step and so has
    loaded them."""
    allocated = failure_moment.observed_allocation(book)
    weights = [low for moment in ledger.moments if moment.name not in ("load", "init") and (low := moment.of("weights").low)]
    if allocated is None or not weights or book.word("log.role") not in (None, "train") or not book.switch("log.training_announced"):
        return []
    too_much = min(weights) > allocated.high * (1 + MEETS / 10)
    return [derived_fact("ledger.verdict", "above", "weights against allocated, all of them loaded")] if too_much else []


def _missing_states(ledger: Ledger, moment: Moment) -> list[Fact]:
    """Optimizer state that the first step will still create: 0 where it exists or lives on the host."""
    step = ledger.moment("optimizer_step")
    if step is None or not ledger.complete or ledger.failing is None:
        return []
    coming = [term for term in step.terms if term.key == "moments"]
    present = any(term.key == "moments" for term in moment.terms)
    size = coming[0].size if coming and not present else Size.exactly(0)
    return [derived_fact("ledger.next_states", size, coming[0].symbols if coming and not present else "0")]


def _host_facts(ledgers: tuple[Ledger, ...]) -> list[Fact]:
    """What the fullest node keeps in host memory."""
    terms = fullest_node(ledgers)
    return [derived_fact("ledger.host", total([term.size for term in terms]), " + ".join(term.symbols for term in terms))] if terms else []
