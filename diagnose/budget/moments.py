"""Every moment of one role: which terms are alive at which instant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from diagnose.budget import activations, comm, extra, failure, logits, states
from diagnose.budget.known import table
from diagnose.budget.ledger import Moment, Term, total
from diagnose.budget.setup import Setup
from diagnose.phrases import phrase
from diagnose.units import Size, show


def trained(job: Setup) -> list[Moment]:
    """The moments of a role that learns, as they are from the second optimizer step on."""
    held = resident(job, moments=True)
    live = [*held, *comm.gathered(job)]
    seen = [*extra.pixels(job), *extra.tower_kept(job)]
    forward = [*live, *seen, *activations.stored(job), *activations.stem(job)]
    tower = [*live, *seen, *extra.tower_working(job)]
    found = [
        Moment("load", (*loading(job),)),
        Moment("init", tuple(resident(job, moments=False))),
        Moment("forward_end", tuple(max(forward, tower, key=_bytes))),  # the tower works before the decoder keeps anything
        Moment("loss_call", (*forward, *logits.at_call(job))),
        Moment("loss_backward", (*forward, *logits.at_backward(job), *comm.backward_bucket(job))),
        Moment("layer_backward", tuple(layer_backward(job, live, forward))),
        Moment("optimizer_step", tuple(optimizer_step(job, held))),
    ]
    if job.reference in ("copy", "adapter", "offload") and job.loss.reference and job.knows("T"):
        after = [*logits.terms(job, job.loss.kept), *_second(logits.terms(job, job.loss.reference))]
        found.append(Moment("reference_forward", (*forward, *after)))
    if job.stage in table()["rollouts"]:
        found.append(Moment("generate", tuple(generating(job))))
        found += scored(job, live)
        found += weight_sync(job, held)
    return _roomier(job, found + evaluation(job, live) + saving(job, held))


def _roomier(job: Setup, found: list[Moment]) -> list[Moment]:
    """Where an engine in another process sleeps while this one trains, every moment but generation has its share as well."""
    freed = extra.freed_by_sleep(job)
    usable = failure.usable(job.book)
    if freed is None or usable is None:
        return found
    return [moment if moment.name == "generate" else replace(moment, room=usable + freed) for moment in found]


def _second(terms: list[Term]) -> list[Term]:
    """The reference model's logits, named as such."""
    return [replace(term, name=phrase("ledger.of_reference", name=term.name), key=f"reference_{term.key}") for term in terms]


def resident(job: Setup, *, moments: bool, engine: bool = False) -> list[Term]:
    """Everything that lies on the card between two passes."""
    return [
        *states.weights(job),
        *states.adapters(job),
        *states.gradients(job, resident=True),
        *states.master(job),
        *states.moments(job, exist=moments),
        *extra.reference(job),
        *extra.reward(job),
        *comm.resident_bucket(job),
        *comm.ddp_buckets(job),
        *extra.engine(job, awake=engine),
    ]


def generating(job: Setup) -> list[Term]:
    """Rollout: what stays of the trainer, the samples of the round and the copy in which they are sent, the trainer's own cache."""
    stays = staying(job, resident(job, moments=True, engine=True))
    return [*stays, *extra.samples(job), *extra.own_generation(job), *comm.gathered(job)]


def staying(job: Setup, held: list[Term]) -> list[Term]:
    """What is left of the trainer's states between two phases of training, where they leave the card for that time."""
    away = {"optimizer": ("gradients", "optimizer_states"), "all": states.GROUPS, "params": ("weights",)}
    gone = away.get(job.book.word("rollout.offload_between_phases") or "", ())
    return [term for term in held if term.group not in gone]


def loading(job: Setup) -> list[Term]:
    """Weights while they are loaded; a script that moves the model to the card first holds it whole."""
    if job.book.switch("script.cuda_before_shard") and not job.sharding.whole_weights and job.knows("P"):
        return [job.term("weights_before_shard", "weights", "2*P", source="model.to(cuda) before the engine exists")]
    return [*states.weights(job), *states.adapters(job), *extra.reference(job)]


def layer_backward(job: Setup, live: list[Term], forward: list[Term]) -> list[Term]:
    """The first layer of backward with everything stored, or the last with every gradient there: the larger."""
    working = [*activations.recomputed(job), *comm.backward_units(job), *comm.backward_bucket(job)]
    first = [*forward, *working]
    grown = [] if states.gradients(job, resident=True) else states.gradients(job, resident=False)
    last = [*live, *grown, *working, *comm.root_gradients(job)]
    return max(first, last, key=_bytes)


def _bytes(terms: Iterable[Term]) -> int:
    return total([term.size for term in terms]).bytes


def optimizer_step(job: Setup, held: list[Term]) -> list[Term]:
    """What lies on the card between two passes (`held`), with every gradient there and what the step itself takes."""
    static = [term for term in held if term.group != "gradients"]
    kept = comm.gathered(job) if job.sharding.scheme == "zero3" else []
    return [*static, *states.gradients(job, resident=False), *kept, *states.step_transient(job)]


def weight_sync(job: Setup, held: list[Term]) -> list[Moment]:
    """Weights on their way to the engine: an adapter is merged into the whole model, full weights go one by one."""
    if (job.book.word("rollout.engine") or "none") in ("none", "hf") or job.sharding.whole_weights or not job.knows("P", "V", "h"):
        return []
    whole = job.trainable.lora
    key, symbols = ("sync_whole", "2*P") if whole else ("sync_one", "2*V*h")
    return [Moment("weight_sync", (*staying(job, held), job.term(key, "comm_buffers", symbols, source="gathered for the engine")))]


def evaluating(job: Setup) -> Setup | None:
    """The job with the rows of evaluation."""
    rows, length = job.book.count("eval.batch_size"), job.values.get("s")
    if rows is None or not isinstance(length, int):
        return None
    both = 2 * rows if job.stage in table()["pairs"] else rows
    return replace(job, values={**job.values, "b": rows, "B": both, "T": -(-both * length // job.sharding.context)})


def evaluation(job: Setup, live: list[Term]) -> list[Moment]:
    """One evaluation forward; predictions that accumulate are unknown without the size of the evaluation set."""
    asked = evaluating(job)
    if asked is None or not (job.book.switch("eval.enabled") or job.book.word("log.phase") == "eval"):
        return []
    return [Moment("eval", (*live, *activations.stem(asked), *logits.in_evaluation(asked)))]


def scoring(job: Setup) -> Setup | None:
    """The job with the rows of a forward that only scores rollouts; None where it has no batch of its own."""
    rows = next((count for name in ("rollout.logprob_batch", "rollout.micro_batch") if (count := job.book.count(name))), None)
    length = job.values.get("s")
    if rows is None or not isinstance(length, int) or job.stage not in table()["rollouts"]:
        return None
    return replace(job, values={**job.values, "b": rows, "B": rows, "T": -(-rows * length // job.sharding.context)})


def scored(job: Setup, live: list[Term]) -> list[Moment]:
    """Log-probabilities of finished rollouts: one forward without backward; states that leave the card between phases are away.
    A run that failed in training had passed it."""
    asked = scoring(job) if failure.scores(job.book) else None
    if asked is None or job.role.headless or not job.knows("P", "V", "h"):
        return []
    away = ("gradients", "optimizer_states") if job.book.word("rollout.offload_between_phases") in ("optimizer", "all") else ()
    there = [term for term in live if term.group not in away]
    return [Moment("logprob", (*there, *activations.stem(asked), *logits.at_call(asked)))]


def saving(job: Setup, held: list[Term]) -> list[Moment]:
    """Gathering for a checkpoint: one parameter at a time under ZeRO-3, one unit for a full FSDP state dict that goes to host
    memory on its way, everything for one that does not. Which one it is only a failure there tells."""
    full = job.book.switch("save.gather_full")
    if job.sharding.whole_weights or not job.knows("P", "V", "h", "P_layer") or full is False:
        return []
    each = states.letter(job.precision.weight, "w")
    if job.sharding.scheme == "fsdp" and full:
        unit = f"{each}*max(P_layer, V*h)"
        if job.book.word("log.phase") != "checkpoint_save":
            return [Moment("save", (*held, job.term("save_gather", "comm_buffers", unit, source="torch FSDP full state dict")))]
        whole = job.term("save_whole", "comm_buffers", f"{each}*P", low=f"{each}*P_layer", source="torch FSDP full state dict")
        return [Moment("save", (*held, whole))]
    return [Moment("save", (*held, job.term("save_gather", "comm_buffers", "2*V*h", source="parameters gathered one by one")))]


def frozen(job: Setup) -> list[Moment]:
    """A model that only computes: reference, reward."""
    held = [*states.weights(job), *comm.gathered(job)]
    if job.role.offloaded and not comm.gathered(job):
        held = states.weights(job)
    found = [Moment("load", tuple(states.weights(job)))]
    if not job.knows("T", "h", "V"):  # a reward model that no catalogue knows
        return [*found, Moment("forward_end", tuple(held))]
    if job.role.headless:
        return [*found, Moment("forward_end", (*held, job.term("in_flight", "activations", "3*2*h*T", source=activations.SAVED)))]
    return [*found, Moment("loss_call", (*held, job.term("logprob_logits", "logits", "8*T*V", source="fp32 logits and their log-softmax")))]


def engine(job: Setup) -> list[Moment]:
    made = extra.engine_role(job)
    return [Moment("generate", tuple(made))] if made else []


def failing(job: Setup, found: list[Moment]) -> tuple[str | None, list[Moment], Moment | None]:
    """The name of the moment of the failure, the moments with that one as it stood when the request failed, and the same whole."""
    name = failure.MOMENT.get(job.book.word("log.phase") or "")
    if failure.scores(job.book) and any(moment.name == "logprob" for moment in found):
        name = "logprob"
    if name == "backward":  # a role that does not train has none
        passes = [moment for moment in found if moment.name in ("loss_backward", "layer_backward")]
        name = max(passes, key=lambda moment: _bytes(moment.terms)).name if passes else None
    stands = next((moment for moment in found if moment.name == name), None)
    if name is None or stands is None:
        return None, found, None
    then = Moment(name, tuple(at_failure(job, stands)), stands.room)
    return name, [then if moment.name == name else moment for moment in found], stands


def at_failure(job: Setup, stands: Moment) -> list[Term]:
    """The terms of a moment without the optimizer state that no step has made yet, and only as far as the pass had come."""
    seen = failure.observed(job.book)
    exist = failure.stepped(job.book, job)
    if exist is None:
        exist = _explained_with_moments(job, stands, seen)
    if stands.name == "optimizer_step" and not exist and seen is not None:
        return _during_first_step(job, seen)
    if stands.name in ("eval", "logprob"):
        asked = evaluating(job) if stands.name == "eval" else scoring(job)
        return [*(term for term in stands.terms if term.group != "logits"), *failure.before_loss_block(asked or job)]
    if stands.name not in ("forward_end", "loss_call"):
        there = [term for term in stands.terms if term.key not in failure.REQUESTED]
        return there if exist else _without_moments(job, there)
    held = [*resident(job, moments=exist), *extra.pixels(job), *extra.tower_kept(job)]
    static = [*held, *comm.gathered(job)]
    if stands.name == "loss_call":
        return [*static, *activations.stored(job), *activations.stem(job), *failure.before_loss_block(job)]
    if any(term.key == "vision_layer" for term in stands.terms):
        return [*static, *(term for term in extra.tower_working(job) if term.key not in failure.REQUESTED)]
    early = [*held, *comm.gathered(job, early=True)]
    part = failure.partial_forward(job, early, seen) if seen is not None else None
    return [*static, *activations.stored(job), *activations.stem(job)] if part is None else [*early, *part]


def _during_first_step(job: Setup, seen: Size) -> list[Term]:
    """The first step creates the moments one by one: what is allocated beyond everything else is what there was of them."""
    every = optimizer_step(job, resident(job, moments=True))
    others = [term for term in every if term.key != "moments" and not term.key.startswith("step_")]
    full = total([term.size for term in states.moments(job)])
    rest = total([term.size for term in others])
    if not full.bytes:
        return others
    there = max(0, min(full.bytes, seen.bytes - rest.bytes))
    symbols = f"max(0, min({full.bytes}, {seen.bytes} - {rest.bytes}))"
    made = job.term("moments_so_far", "optimizer_states", symbols, source="allocated less everything else", full=show(full.bytes))
    return [*others, replace(made, size=Size.between(0, full.high, there))]


def _explained_with_moments(job: Setup, stands: Moment, seen: Size | None) -> bool:
    """Without a step count: the moments exist unless what surely lies on the card would exceed what was allocated."""
    if seen is None or stands.name in ("load", "init"):
        return stands.name not in ("load", "init")
    return total([term.size for term in resident(job, moments=True)]).low <= seen.high


def _without_moments(job: Setup, terms: list[Term]) -> list[Term]:
    never = states.moments(job, exist=False)
    return [replacement for term in terms for replacement in (never if term.key == "moments" else [term])]
