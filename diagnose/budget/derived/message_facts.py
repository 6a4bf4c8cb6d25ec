"""Facts from the figures of the message alone: what was short, what this process may have, who else is on the card."""

from __future__ import annotations

from dataclasses import replace

from diagnose import families
from diagnose.budget.model import non_torch
from diagnose.budget.moments import failure_moment
from diagnose.catalogue.cards import sizes_sold
from diagnose.facts import Fact, FactBook, derived_fact
from diagnose.units import Size, Version, not_negative

#: What torch asks the driver for where less than half of it is wanted: a card with less than that is full.
SEGMENT = 20 << 20

#: The driver rounds up and keeps some back, but hardly more than this: with more to spare another reason refused the request.
KEPT_BACK = 128 << 20

#: How many tokens a prefill may have, as the log or the settings say, in the order in which they are tried.
PREFILLS = ("rollout.prefill_tokens", "rollout.prompt_len", "log.requested_tokens", "log.long_sample", "rollout.max_model_len")

#: Scores that a failure is told by; the heads that one card may have; the part of one head's that a printed figure may leave open.
LARGE_SCORES, HEADS, AMBIGUOUS = 1 << 30, range(2, 129), 0.1

#: Tokens of llama.cpp's micro batch where none are set (n_ubatch; common/common.h).
MICRO_BATCH = 512


def facts_of_message(book: FactBook) -> list[Fact]:
    message_facts: list[Fact] = []
    family = book.word("log.family")
    family_traits = families.of(family)
    if family_traits.memory and "log.on_card" not in book:
        message_facts.append(derived_fact("log.on_card", family_traits.memory == "card", f"family {family}"))
    if family_traits.limited:
        message_facts.append(derived_fact("host.shared", False, "the limit that was reached is the job's own"))
        message_facts.append(derived_fact("host.limited", True, f"family {family}"))
    if "log.windows" not in book and book.switch("log.windows_driver") and not book.switch("log.wsl"):
        message_facts.append(derived_fact("log.windows", True, "the driver is that of Windows, and nothing speaks of WSL"))
    requested, free = book.size("log.requested"), book.size("log.free")
    room = _free_under_cap(book)
    if family:
        within = [size for size in (free, room) if size is not None]
        refused = requested is not None and free is not None and all(max(requested.high, SEGMENT) + KEPT_BACK < size.low for size in within)
        source = "requested (at least 20 MiB) and 128 MiB < free, and within the cap of the process"
        message_facts.append(derived_fact("log.refused", refused, source))
        if "log.request_overflow" not in book:
            message_facts.append(derived_fact("log.request_overflow", False, "a size that a card or machine may have"))
    message_facts.append(derived_fact("log.cards_of_request", _cards_of_request(book), "requested / capacity"))
    if requested is not None and free is not None and room is not None and room.bytes < free.bytes:
        message_facts.append(derived_fact("log.shortage", not_negative(requested - room), "requested - (allowed - reserved)"))
    elif requested is not None and free is not None:
        message_facts.append(derived_fact("log.shortage", not_negative(requested - free), "requested - free"))
    reserved, allocated = book.size("log.reserved_total"), book.size("log.allocated")
    if reserved is not None and allocated is not None and "log.reserved_unallocated" not in book:
        message_facts.append(derived_fact("log.reserved_unallocated", not_negative(reserved - allocated), "reserved - allocated"))
    torch = book.version("version.torch")
    old = torch < Version("2.1") if torch is not None else book.switch("log.torch_before_2_1") is True
    if old and "alloc.expandable_segments" not in book:
        message_facts.append(derived_fact("alloc.expandable_segments", False, "torch before 2.1 has no expandable segments"))
    usable = failure_moment.usable_memory(book)
    if usable is not None:
        capped = usable == failure_moment.process_cap(book)
        message_facts.append(
            derived_fact("log.usable", usable, "the cap of the process" if capped else "free + allocated + reserved but unallocated")
        )
    filled = failure_moment.memory_to_explain(book)
    if family and filled is not None:
        message_facts.append(derived_fact("log.filled", replace(filled, text=""), "allocated, or the whole card"))
    return [*message_facts, *_process_facts(book), *_growth(book), *_layers(book), *_context(book), *_scores(book)]


def _cards_of_request(book: FactBook) -> int:
    """How many such cards, or of the largest there are, the request alone would fill; 1 where it fits one, or no request is known."""
    requested = book.size("log.requested")
    if requested is None or book.switch("log.on_card") is False:
        return 1
    capacity = book.size("log.capacity") or book.size("hardware.capacity") or sizes_sold()[-1][1]
    return max(1, requested.low // max(1, capacity.high))


def _torch_memory(book: FactBook) -> Size | None:
    """Bytes that torch holds on the card. What it prints as allocated includes private pools."""
    allocated, idle = failure_moment.observed_allocation(book), book.size("log.reserved_unallocated")
    if allocated is not None and idle is not None:
        return allocated + idle
    return book.size("log.reserved_total")


def _free_under_cap(book: FactBook) -> Size | None:
    """What torch may still take where the process has a cap of its own; None without one."""
    allowed, reserved = book.size("log.allowed"), _torch_memory(book)
    return None if allowed is None or reserved is None else not_negative(allowed - reserved)


def _process_facts(book: FactBook) -> list[Fact]:
    """What of the card belongs to this process besides torch, and what belongs to no process known here.

    The printed figure of the process is used where it can be its own: in containers and under WSL it may be 0, or too much.
    """
    capacity = book.size("log.capacity") or book.size("hardware.capacity")  # a memory snapshot does not know it
    free, reserved, process = book.size("log.free"), _torch_memory(book), book.size("log.process_in_use")
    beside = non_torch.process()
    if reserved is None:  # an engine that looked before it took anything has its context alone
        looked = book.word("log.engine_check") == "card_not_free" and capacity is not None and free is not None
        others = capacity - free - beside if looked else None  # type: ignore[operator]
        if others is not None:
            return [derived_fact("log.foreign", not_negative(others), "capacity - free - context")]
        return _foreign_of_cut_message(book, capacity, free)
    own, formula, process_facts = reserved + beside, "capacity - free - allocated - unallocated - context", list[Fact]()
    most_possible = capacity.high - free.low if capacity is not None and free is not None else reserved.high + 3 * beside.high
    if process is not None and reserved.low <= process.high and process.low <= most_possible:
        own, formula = process, "capacity - free - this process"
        process_facts.append(derived_fact("log.not_torch", not_negative(process - reserved), "this process - allocated - unallocated"))
    if capacity is None or free is None:
        return process_facts
    engine = book.size("log.engine_in_use")
    others = capacity - free - own
    if engine is not None:
        others, formula = others - engine, f"{formula} - rollout engine"
    listed = book.size("log.other_processes")
    if listed is not None and others.high / 2 <= listed.bytes <= others.low:  # the rest is the driver's or the desktop's
        others, formula = listed, "the other processes that the message lists"
    return [*process_facts, derived_fact("log.foreign", not_negative(others), formula)]


def _foreign_of_cut_message(book: FactBook, capacity: Size | None, free: Size | None) -> list[Fact]:
    """What others hold of the card by a message that was cut before torch's own figures. Where it lists processes and none as its own,
    either those or the rest of the card is somebody else's: the smaller part is foreign for certain."""
    others, listed = book.size("log.other_processes"), book.size("log.listed_processes")
    if others is not None:
        return [derived_fact("log.foreign", others, "the other processes that the message lists")]
    if capacity is None or free is None or listed is None:
        return []
    rest = not_negative(capacity - free - listed)
    smaller = min(listed, rest, key=lambda part: part.bytes)
    return [derived_fact("log.foreign", smaller, "the smaller of the processes that the message lists and the rest of the card")]


def _layers(book: FactBook) -> list[Fact]:
    """The layers that the card has room for, where the one buffer of those meant for it was refused: layers are taken to be alike, and a
    twentieth is left free. Nothing for a second card, whose share of the layers nobody prints."""
    layers, buffer, free = book.count("log.card_layers"), book.size("log.requested"), book.size("log.card_free")
    if not layers or not buffer or free is None or book.word("log.phase") != "model_load" or book.count("log.gpu"):
        return []
    fitting = int(layers * 0.95 * free.bytes / buffer.bytes)
    return [derived_fact("rollout.fitting_layers", fitting, "layers * 95% of free / requested")] if fitting < layers else []


def _context(book: FactBook) -> list[Fact]:
    """The context that llama.cpp sets up: the sequences that share it, and what one head's scores of a micro batch take where no flash
    attention runs (a micro batch is 512 tokens unless set, and never more than the context)."""
    cells, of_sequence = book.count("log.context_cells"), book.count("log.context_per_sequence")
    if not cells:
        return []
    slots = cells // of_sequence if of_sequence else book.count("log.sequences")
    rows = min(book.count("rollout.prefill_tokens") or MICRO_BATCH, cells)
    context_facts = [derived_fact("rollout.scores_of_a_head", Size.exactly(4 * rows * cells), "4 bytes * n_ubatch * n_ctx")]
    if "rollout.max_model_len" not in book:
        context_facts.append(derived_fact("rollout.max_model_len", of_sequence or cells // (slots or 1), "n_ctx of one sequence"))
    return [*context_facts, derived_fact("rollout.slots", slots, "n_ctx / n_ctx_per_seq")] if slots else context_facts


def _scores(book: FactBook) -> list[Fact]:
    """The tokens of one prefill where the request is their scores for a whole number of heads: n * n * heads * 4 bytes (or 2, which looks
    like half as many heads). Only a figure precise enough to tell neighbouring numbers of heads apart, and of scores that are large."""
    request = book.size("log.requested")
    if request is None or request.bytes < LARGE_SCORES or not families.of(book.word("log.family")).memory:
        return []
    for name in PREFILLS:
        tokens = book.count(name)
        if not tokens:
            continue
        of_head = 4 * tokens * tokens
        heads = round(request.bytes / of_head)
        is_precise = request.high - request.low <= of_head * AMBIGUOUS
        if heads in HEADS and is_precise and request.low <= heads * of_head <= request.high:
            scores = derived_fact("log.scores_tokens", tokens, f"request = {heads} heads * {tokens:,}^2 * 4 bytes")
            return [scores, derived_fact("log.scores_heads", heads, scores.witness.key or "request / (tokens^2 * 4 bytes)")]
    return []


def _growth(book: FactBook) -> list[Fact]:
    role = book.word("log.role")
    name = "log.critic_allocated_after_init" if role == "critic" else "log.allocated_after_init"
    earlier, now = book.size(name), failure_moment.observed_allocation(book)
    return (
        []
        if earlier is None or now is None
        else [derived_fact("log.grown", not_negative(now - earlier), "allocated - allocated after initialisation")]
    )
