"""The memory of the failed card as one bar: segments in order, the refused request beyond the card's edge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from diagnose import families
from diagnose.budget.model.ledger import Ledger, Moment, Term
from diagnose.diagnosis import Diagnosis
from diagnose.parse.model.event import Event
from diagnose.phrases import Lang, phrase
from diagnose.records import NamedTuple
from diagnose.render.parts import failure_text, memory_rows, words
from diagnose.render.parts.words import word
from diagnose.units import Size

#: Each part with its sign (readable without colour), in the order of the bar.
SIGNS = {
    "weights": "W",
    "gradients": "G",
    "optimizer": "O",
    "activations": "A",
    "logits": "L",
    "other": "+",
    "cache": "K",
    "engine": "E",
    "allocated": "T",
    "unexplained": "?",
    "unused": "-",
    "outside": "=",
    "foreign": "x",
    "free": ".",
    "request": "!",
}

#: The part that a group of ledger terms belongs to; the rest is `other`.
PART_OF = {
    "weights": "weights",
    "gradients": "gradients",
    "optimizer_states": "optimizer",
    "activations": "activations",
    "attention_scores": "activations",
    "logits": "logits",
    "kv_cache": "cache",
    "rollout_engine": "engine",
}

#: Buffers that live for one update only: no optimizer states, whatever the ledger counts them under.
PASSING = "step_"

#: Gradients of the backward pass, and those that a step on the host holds beside them.
GRADIENTS_TWICE = frozenset(("host_gradients", "host_gradients_fp32"))

#: Parts that neither the rows nor the progress of a step change.
STEADY = ("weights", "optimizer")

#: Parts that no batch changes, though the progress of a step may.
BATCHLESS = (*STEADY, "gradients")

#: Parts below this share of the card are left out: a whole cell would overstate them.
MIN_SHARE = 0.0005


class Part(NamedTuple):
    """A segment of the bar, in bytes; `estimated` if the ledger and not the log gives it, `called` an individual name, `groups` those of
    the ledger that make a large segment of others."""

    kind: str
    bytes: int
    estimated: bool = False
    called: str = ""
    groups: tuple[str, ...] = ()

    def name(self, lang: Lang) -> str:
        names = [phrase(f"plan.group_{group}").to(lang) for group in self.groups]
        return word("and", lang).join(names) if names else word(f"bar_{self.called or self.kind}", lang)


@dataclass(slots=True)
class Card:
    """The bar. `edge`: capacity of the card (or host) in bytes, 0 if unknown; segments beyond it do not fit. `title`: whose memory at
    which moment, with the capacity said of the card, so that it is not read as the need."""

    title: str
    parts: tuple[Part, ...]
    edge: int

    @property
    def total(self) -> int:
        return sum(part.bytes for part in self.parts)

    def cells(self, width: int) -> list[tuple[Part, int]]:
        """The number of the bar's `width` cells for each segment: at least one each, the rest by size."""
        if not self.parts:  # figures that are all zero
            return []
        whole = max(self.total, 1)
        exact = [part.bytes * width / whole for part in self.parts]
        counts = [max(int(share), 1) for share in exact]
        while sum(counts) > width and max(counts) > 1:
            counts[max(range(len(counts)), key=lambda at: counts[at] - exact[at] if counts[at] > 1 else -width)] -= 1
        while sum(counts) < width:
            counts[max(range(len(counts)), key=lambda at: exact[at] - counts[at])] += 1
        return list(zip(self.parts, counts, strict=True))

    def edge_cell(self, width: int) -> int | None:
        """The cell at which the card ends; None if the whole bar fits or the capacity is unknown."""
        if not self.edge or self.total <= self.edge:
            return None
        cells, bytes_, shared = 0, 0, self.cells(width)
        for part, count in shared:
            if bytes_ + part.bytes > self.edge:
                inside = (self.edge - bytes_) / max(part.bytes, 1)
                return cells + min(round(inside * count), count)
            bytes_, cells = bytes_ + part.bytes, cells + count
        return None


def build_card(diagnosis: Diagnosis, lang: Lang) -> Card | None:
    """The bar of a diagnosis: printed figures subdivided by the ledger, else the ledger's peak; None without either."""
    if diagnosis.verdict.status not in ("oom", "suspected") and diagnosis.asked != "check":
        return None
    if failure_text.on_host(diagnosis):
        return unless_alone(host_card(diagnosis, lang))
    ledger, event = memory_rows.main_ledger(diagnosis), diagnosis.root
    moment = ledger.moment(ledger.failing) if ledger is not None else None  # any other moment is not what the message tells of
    capacity = card_capacity(diagnosis)
    if event is not None and capacity is not None and event.allocated is not None:
        return printed_card(diagnosis, event, capacity.bytes, moment, lang)
    if event is not None and event.max_allowed is not None and event.mps_allocated is not None:
        return metal_card(event, event.max_allowed.bytes, lang)
    moment = moment or (ledger.peak if ledger is not None else None)
    if ledger is None or moment is None or not moment.terms or (not ledger.complete and set(bytes_by_part(moment)) <= {"other"}):
        return None  # buffers alone say nothing of a job whose model is unknown
    return unless_alone(estimated_card(ledger, moment, event, lang, engine_share(diagnosis) if ledger.role == "engine" else None))


def unless_alone(memory: Card | None) -> Card | None:
    """The bar, but for one of a single part, which says no more than its figure does."""
    return memory if memory is not None and len(memory.parts) > 1 else None


def card_capacity(diagnosis: Diagnosis) -> Size | None:
    """The printed capacity, else the known capacity of the card."""
    event = diagnosis.root
    printed_capacity = next((fact.value for fact in diagnosis.facts if fact.name == "hardware.capacity"), None)
    return (
        event.capacity
        if event is not None and event.capacity is not None
        else printed_capacity
        if isinstance(printed_capacity, Size)
        else None
    )


def printed_card(diagnosis: Diagnosis, event: Event, capacity: int, now: Moment | None, lang: Lang) -> Card:
    """The card by the printed figures. Memory that torch allocated is subdivided by the ledger unless the two contradict."""
    if event.allocated is None:
        raise ValueError("a message that does not say what is allocated")
    sizes = {fact.name: fact.value for fact in diagnosis.facts if isinstance(fact.value, Size)}
    allocated = event.allocated.bytes - (sizes["log.asleep"].bytes if "log.asleep" in sizes else 0)
    deviation = memory_rows.estimate_deviation(diagnosis)
    inside = split_allocated(now, allocated, capacity, is_short=deviation == "below") if now is not None and deviation != "above" else []
    parts = inside or snapshot_parts(diagnosis, allocated) or [Part("allocated", allocated)]
    idle = sizes.get("log.reserved_unallocated", event.reserved_unallocated)  # older releases print what is reserved in total
    unused = idle.bytes if idle else 0
    free = event.free.bytes if event.free else 0
    engine = sizes["log.engine_in_use"].bytes if "log.engine_in_use" in sizes else 0
    foreign = failure_text.foreign_memory(diagnosis)
    others = foreign.bytes if foreign is not None else 0
    own = sizes.get("log.not_torch")
    outside = own.bytes if own is not None else max(capacity - allocated - unused - free - engine - others, 0)
    parts += [
        Part("engine", engine),
        Part("unused", unused),
        outside_part(outside, own is not None or event.free is not None),
        Part("foreign", others),
        Part("free", free),
    ]
    if event.requested is not None:
        parts.append(Part("request", event.requested.bytes, called="refused" if event.requested.high <= free else ""))
    moment = words.moment(now.name, lang) if now is not None and inside else ""
    size = words.gib(capacity)
    title = word("bar_card_at", lang, moment=moment, size=size) if moment else word("bar_card", lang, size=size)
    return Card(title, visible_parts(parts, capacity), capacity)


def snapshot_parts(diagnosis: Diagnosis, allocated: int) -> list[Part]:
    """Memory that torch allocated by what a snapshot saw: the kinds that its stack frames name, and the rest as it is printed. Empty
    without a snapshot, or where it names less than a tenth."""
    taken = diagnosis.snapshot
    sums: dict[str, int] = {}
    for group, size in taken.groups if taken is not None else ():
        if group in PART_OF or group == "comm_buffers":
            kind = PART_OF.get(group, "other")
            sums[kind] = sums.get(kind, 0) + size
    named = sum(sums.values())
    if not 0.1 * allocated <= named <= allocated:
        return []
    return [*(Part(kind, sums[kind]) for kind in SIGNS if kind in sums), Part("allocated", allocated - named, called="allocated_else")]


#: A CUDA context with its libraries and communicators has at most this many bytes; what is more has another owner.
CONTEXT = 1536 * 2**20


def outside_part(size: int, is_told: bool) -> Part:
    """What this process has outside torch's allocator, called driver and libraries while it has their size; a rest that may be free, too,
    where the message does not tell what is."""
    return Part("outside", size, called="" if size <= CONTEXT else "beside_torch" if is_told else "not_told")


def metal_card(event: Event, limit: int, lang: Lang) -> Card:
    """The memory limit and pools that Metal prints; the ledger cannot subdivide pools, which may be unused."""
    torch, others = (size.bytes if size is not None else 0 for size in (event.mps_allocated, event.other_allocations))
    parts = [Part("allocated", torch), Part("outside", others, called="metal_others"), Part("free", max(limit - torch - others, 0))]
    if event.requested is not None:
        parts.append(Part("request", event.requested.bytes))
    return Card(word("bar_metal", lang, size=words.gib(limit)), visible_parts(parts, limit), limit)


def split_allocated(moment: Moment, allocated: int, capacity: int, is_short: bool = False) -> list[Part]:
    """Memory that torch allocated, by groups of the ledger, with an unexplained rest. Empty if weights and optimizer states alone exceed
    it. Of an estimate that explains too little (`is_short`) only what no batch changes: a small figure would deny what filled the card."""
    sums = bytes_by_part(moment)
    if is_short:
        kept = [Part(kind, sums[kind], True) for kind in SIGNS if kind in BATCHLESS and sums.get(kind)]
        rest = allocated - sum(part.bytes for part in kept)
        return [*kept, Part("allocated", rest, called="allocated_else")] if kept and rest > 0 else []
    estimate = sum(sums.values())
    if not estimate:
        return []
    if estimate > allocated:  # by rows shorter than the limit, or its own inaccuracy: the caller has looked
        parts = next((kinds for kinds in (BATCHLESS, STEADY) if sum(sums.get(kind, 0) for kind in kinds) <= allocated), None)
        if parts is None:
            return []
        steady = sum(sums.get(kind, 0) for kind in parts)
        sums = {kind: count if kind in parts else count * (allocated - steady) // (estimate - steady) for kind, count in sums.items()}
    sums["unexplained"] = allocated - sum(sums.values())
    return estimated_parts(sums, other_groups(moment, capacity))


def estimated_parts(sums: Mapping[str, int], groups: tuple[str, ...] = ()) -> list[Part]:
    """The segments in the order of the bar; `groups`: what makes most of the others."""
    return [Part(kind, sums[kind], True, groups=groups if kind == "other" else ()) for kind in SIGNS if kind in sums]


def engine_share(diagnosis: Diagnosis) -> float | None:
    """The share of the card that the inference engine may take; None if unknown."""
    share = next((fact.value for fact in diagnosis.facts if fact.name == "rollout.gpu_memory_utilization"), None)
    return share if isinstance(share, float) and 0 < share < 1 else None


def estimated_card(ledger: Ledger, moment: Moment, event: Event | None, lang: Lang, share: float | None = None) -> Card:
    """The card by the ledger, if no message prints its state; for an unknown card, the need.

    A card that ran out was full, so the memory that the ledger leaves over counts as unexplained, not as free. Not so beyond the `share`
    of an engine; and an engine that finds no room for its cache has none, whatever the estimate leaves for it.
    """
    sums = bytes_by_part(moment)
    if event is not None and event.phase == "kv_cache" and families.of(event.family).engine:
        sums.pop("cache", None)
    parts = estimated_parts(sums, other_groups(moment, ledger.capacity.bytes if ledger.capacity else moment.total.bytes))
    need = moment.total
    if moment.name == ledger.failing and event is not None and event.requested is not None:
        parts.append(Part("request", event.requested.bytes))
        need += event.requested
    if ledger.capacity is None:
        key = "bar_needs_at" if ledger.complete else "bar_needs_least_at"
        title = word(key, lang, moment=words.moment(moment.name, lang), size=words.amount(need, lang))
        return Card(title, visible_parts(parts, sum(part.bytes for part in parts)), 0)
    capacity = ledger.capacity.bytes
    usable = ledger.usable.bytes if ledger.usable else capacity
    outside = max(capacity - usable, 0)
    parts.insert(0, Part("outside", outside, True))
    if (remaining := capacity - sum(part.bytes for part in parts)) > 0:
        free = remaining if event is None else min(event.free.bytes, remaining) if event.free else 0
        beyond = min(int(capacity * (1 - share)), remaining - free) if share is not None and event is not None else 0
        at = len(parts) - (parts[-1].kind == "request")
        parts[at:at] = [
            Part("unexplained", remaining - free - beyond, True, "not_estimated"),
            Part("free", beyond, True, "beyond_share"),
            Part("free", free, event is None),
        ]
    failed = "bar_estimate_at" if ledger.failing else "bar_estimated_peak"
    key = failed if event is not None else "bar_fullest"
    title = word(key, lang, moment=words.moment(moment.name, lang), size=words.gib(capacity))
    return Card(title, visible_parts(parts, capacity), capacity)


def host_card(diagnosis: Diagnosis, lang: Lang) -> Card | None:
    """The host memory that the configuration needs on a node, against the node's capacity."""
    moment = memory_rows.host_moment(diagnosis)
    if moment.total.bytes <= 0:
        return None
    ram = max((ledger.host.ram.bytes for ledger in diagnosis.ledgers if ledger.host.ram is not None), default=0)
    sums = bytes_by_part(moment)
    is_twice = {term.key for term in moment.terms} >= GRADIENTS_TWICE
    named = {"gradients": "gradients_twice"} if is_twice else {}
    parts = [Part(kind, sums[kind], True, named.get(kind, "")) for kind in SIGNS if kind in sums]
    if ram > moment.total.bytes:
        parts.append(Part("free", ram - moment.total.bytes, True, "host_rest"))
    title = word("bar_host_of" if ram else "bar_host", lang, size=words.gib(ram or moment.total.bytes))
    return Card(title, visible_parts(parts, ram or moment.total.bytes), ram)


def other_groups(moment: Moment, capacity: int) -> tuple[str, ...]:
    """The one or two groups that make most of what is none of the named parts, where that is much of the card: `other` would leave it
    unsaid."""
    sums: dict[str, int] = {}
    for term in moment.terms:
        if part_of(term) == "other":
            group = "update" if term.key.startswith(PASSING) else term.group
            sums[group] = sums.get(group, 0) + max(term.size.bytes, 0)
    whole, largest = sum(sums.values()), sorted(sums, key=lambda group: -sums[group])[:2]
    if whole <= MUCH * capacity:
        return ()
    named = next((largest[:count] for count in (1, 2) if sum(sums[group] for group in largest[:count]) > MOST * whole), [])
    return tuple(named)


def part_of(term: Term) -> str:
    """The part of the bar that a term belongs to."""
    return "other" if term.key.startswith(PASSING) else PART_OF.get(term.group, "other")


def bytes_by_part(moment: Moment) -> dict[str, int]:
    """The bytes of a moment by group."""
    sums: dict[str, int] = {}
    for term in moment.terms:
        kind = part_of(term)
        sums[kind] = sums.get(kind, 0) + max(term.size.bytes, 0)
    return sums


def visible_parts(parts: list[Part], capacity: int) -> tuple[Part, ...]:
    """The segments large enough for a cell, and the request."""
    smallest = max(int(capacity * MIN_SHARE), 1)
    return tuple(part for part in parts if part.bytes >= smallest or (part.kind == "request" and part.bytes > 0))


#: What is more than MUCH of the card is not left as `other` where one or two groups make MOST of it.
MUCH, MOST = 0.2, 0.8

#: The part of the bar that a cause speaks of.
PART_OF_CAUSE = {"weights": "weights", "gradients": "gradients", "optimizer_states": "optimizer", "activations": "activations",
                 "logits": "logits", "kv_cache": "cache"}  # fmt: skip


#: A request that is more than this share of its part is named with it; a part that is less of the card is not worth a word.
LARGE = 0.1


def drawn_request(memory: Card) -> int:
    """The bytes of the failed request in the bar."""
    return next((part.bytes for part in memory.parts if part.kind == "request"), 0)


def figures_of_causes(diagnosis: Diagnosis, lang: Lang) -> dict[str, failure_text.Figure]:
    """What is said of each cause's size: nothing where the headline has said it, else what the bar draws. Causes of which both say nothing
    are left out."""
    return said_by_headline(diagnosis) | drawn_figures(diagnosis, lang)


def said_by_headline(diagnosis: Diagnosis) -> dict[str, failure_text.Figure]:
    """Causes whose size is that of the refused request or of the process that was killed."""
    event = diagnosis.root
    said = [size.bytes for size in (event.requested, event.process_in_use) if size is not None] if event is not None else []
    sizes = {cause.cause: cause.accounts_for for cause in diagnosis.judgement.causes if cause.accounts_for is not None}
    alike = (cause for cause, size in sizes.items() if any(abs(size.bytes - each) <= 0.01 * each for each in said))
    return dict.fromkeys(alike, failure_text.Figure())


def drawn_figures(diagnosis: Diagnosis, lang: Lang) -> dict[str, failure_text.Figure]:
    """Each cause with the size of its part of the bar, and the refused request beside it; empty sizes where the estimate falls short."""
    memory = None if failure_text.on_host(diagnosis) else build_card(diagnosis, lang)
    if memory is None:
        return {}
    now = memory_rows.main_moment(memory_rows.main_ledger(diagnosis))
    if now is not None and memory_rows.estimate_deviation(diagnosis) == "below":  # how much of the rest belongs to it is not known
        counted = bytes_by_part(now)
        return {cause: failure_text.Figure() for cause, kind in PART_OF_CAUSE.items() if kind in counted}
    drawn = {part.kind: part.bytes for part in memory.parts if part.estimated}
    named = diagnosis.attributions[0] if diagnosis.attributions else None
    of_request = PART_OF.get(named.group) if named is not None else None
    figures = {}
    for cause, kind in PART_OF_CAUSE.items():
        if kind not in drawn:
            continue
        refused = drawn_request(memory) if kind == of_request else 0
        refused = refused if refused > LARGE * drawn[kind] else 0
        share = (drawn[kind] + refused) / memory.edge if memory.edge else None
        figures[cause] = failure_text.Figure(Size.exactly(drawn[kind]), share, Size.exactly(refused) if refused else None)
    return figures


#: What is no part of a job.
NOT_OF_A_JOB = ("allocated", "unexplained", "unused", "outside", "free", "request", "foreign", "other")


def largest_part(diagnosis: Diagnosis, lang: Lang) -> str:
    """The sentence for the largest part of a card that the estimate knows; empty where that is little."""
    memory = None if failure_text.on_host(diagnosis) else build_card(diagnosis, lang)
    parts = [part for part in memory.parts if part.groups or part.kind not in NOT_OF_A_JOB] if memory is not None and memory.edge else []
    if memory is None or not parts:
        return ""
    largest = max(parts, key=lambda part: part.bytes)
    if largest.bytes < LARGE * memory.edge:
        return ""
    name = "largest_exceeds" if largest.bytes > memory.edge else "largest_known"
    return word(name, lang, what=largest.name(lang), much=words.gib(largest.bytes), card=words.gib(memory.edge))


def figure(part: Part) -> str:
    """The size in GiB with two decimals, without the unit."""
    return f"{part.bytes / 2**30:.2f}"
