"""The inputs of a role's formulas, read once from the facts: dimensions, sharding, precisions, batch, loss."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from diagnose.adapters.schema.framework_tables import lineage
from diagnose.budget.model import partition
from diagnose.budget.model.batch_shape import Batch, batch
from diagnose.budget.model.formulas import Number, Span, term
from diagnose.budget.model.job_roles import Role, book_of_role
from diagnose.budget.model.ledger import Term
from diagnose.budget.model.loss_table import Loss, LossQuery, find_loss, losses, named_for
from diagnose.budget.model.precisions import Precision, precision
from diagnose.budget.model.software_table import table
from diagnose.budget.model.state_sharding import Sharding, sharding
from diagnose.budget.model.trainable_params import Trainable, expert_adapters, frozen_leading_layers, trainable, wrapped_params
from diagnose.catalogue import Model
from diagnose.facts import FactBook
from diagnose.ternary import Truth
from diagnose.traits import Traits, traits_of


@dataclass(slots=True, eq=False, repr=False)
class Setup:
    """One role of one job in numbers. `values` are the letters of the formulas (docs/memory.md); a missing letter is unknown. `given` is
    the job's book, `book` the same as this role reads it; `cast` and `kin` are the job's roles and the setups of those in its process,
    filled on demand."""

    given: FactBook
    book: FactBook
    role: Role
    model: Model | None
    framework: str
    stage: str
    sharding: Sharding
    precision: Precision
    trainable: Trainable
    batch: Batch
    loss: Loss
    checkpointing: str
    attention: str
    fused: bool
    values: dict[str, Number]
    unknown: tuple[str, ...]
    cast: list[Role] = field(default_factory=list)
    kin: dict[str, Setup] = field(default_factory=dict)

    @property
    def traits(self) -> Traits:
        """What the framework does differently from most."""
        return traits_of(self.framework)

    @property
    def reference(self) -> str:
        """Where the reference model is: none, copy, adapter, offload, precomputed; "" where that is unknown."""
        if not self.role.hosts or self.stage not in table()["compared"]:
            return "none"
        if self.trainable.lora:
            return "adapter"
        reference_word = self.book.word("train.ref_model")
        if reference_word is not None:
            return reference_word
        return "copy" if self.stage in ("dpo", "kto") else ""

    def term(self, key: str, group: str, symbols: str, *, source: str = "", low: str = "", high: str = "", **texts: object) -> Term:
        """A term whose formula is evaluated with this role's letters."""
        return term(key, group, symbols, self.values, source=source, low=low, high=high, **texts)

    def knows(self, *letters: str) -> bool:
        return self.values.keys() >= set(letters)

    def reading(self, facts: FactBook) -> Setup:
        """The same setup over another book that says the same of all that it was made from; the rest is read from that book."""
        return replace(self, given=facts, book=book_of_role(facts, self.role), cast=[], kin={})


def setup(facts: FactBook, role: Role) -> Setup:
    """The setup of a role. Missing facts are listed in `unknown`; their letters are left out."""
    book = book_of_role(facts, role)
    framework, stage = book.word("train.framework") or "", book.word("train.stage") or "sft"
    model = _framework_model(role.model, framework, book)
    shards = sharding(book, role)
    learnt = trainable(book, role, framework)
    widths = _weight_width(book, role, shards, framework, learnt)
    rows = batch(book, role, stage)
    is_counted = learnt.params is not None and (model is not None or book.count("model.total_params") is not None)
    without_shape = () if is_counted else ("model.shape",)
    return Setup(
        given=facts,
        book=book,
        role=role,
        model=model,
        framework=framework,
        stage=stage,
        sharding=shards,
        precision=widths,
        trainable=learnt,
        batch=rows,
        loss=_loss(book, framework, stage, model, shards),
        checkpointing=book.word("train.gradient_checkpointing") or "disabled",
        attention=book.word("model.attention") or "sdpa",
        fused=_has_fused_layers(book, framework),
        values=_letters(model, shards, widths, learnt, rows),
        unknown=tuple(
            dict.fromkeys([*without_shape, *shards.unknown, *widths.unknown, *learnt.unknown, *rows.unknown, *_presumed_facts(book, role)])
        ),
    )


def _has_fused_layers(book: FactBook, framework: str) -> bool:
    """Whether norms and gated MLPs run in kernels that keep their 16-bit inputs alone. Liger's loss comes with its layers."""
    said = book.switch("train.fused_layers") or book.word("train.loss_kernel") == "liger"
    return bool(said) or traits_of(framework).fused_layers


def _weight_width(book: FactBook, role: Role, shards: Sharding, framework: str, learnt: Trainable) -> Precision:
    """The role's precisions. Where it is unknown how the weights were loaded, fp32 is excluded if it does not fit into what was
    allocated."""
    widths = precision(book, role, shards, framework)
    if isinstance(widths.weight, Span) and learnt.params and _too_few_bytes_for_fp32(book, role, shards, learnt.params):
        return precision(book.changed({"train.load_dtype": "bf16"}), role, shards, framework)
    return widths


def _letters(model: Model | None, shards: Sharding, widths: Precision, learnt: Trainable, rows: Batch) -> dict[str, Number]:
    """The letters of the formulas that are known."""
    values: dict[str, Number] = {"w": widths.weight, "g": widths.gradient}
    if model is not None:
        values |= partition.letters(model, shards)
    params = learnt.params
    if params is not None:
        values["P"] = partition.params_on_card(model, params, shards)
    if learnt.count is not None:
        values["Pt"] = values["P"] if learnt.count == params else _trained_on_card(model, shards, learnt, params)
    over = shards.group if params is None or learnt.lora else partition.state_ranks(model, _mostly(learnt, params), shards)
    if over:
        values["N"] = over
    if learnt.lora:
        values |= _adapter_letters(model, shards, learnt)
    values |= rows.letters
    if shards.sequence and "T" in rows.letters:
        whole = rows.letters["T"]
        values |= {"T_l": whole, "T": -(-whole // shards.tensor)}  # type: ignore[operator]
    return {letter: number for letter, number in values.items() if letter[0] not in "PLN"} if shards.parted else values


def _mostly(learnt: Trainable, params: int) -> int:
    """The parameters that learn where these are nearly all of them, else all."""
    return learnt.count if learnt.count is not None and 2 * learnt.count > params else params


def _trained_on_card(model: Model | None, shards: Sharding, learnt: Trainable, params: int | None) -> int:
    """Trained parameters of one card: all but a frozen tower as the model is divided, adapters on experts as the experts are, and the rest
    evenly."""
    count = learnt.count or 0
    if not shards.parts_experts or model is None or model.experts is None:
        return -(-count // shards.model_parallel)
    if not learnt.lora:
        return partition.params_on_card(model, count, shards) if params and 2 * count > params else -(-count // shards.model_parallel)
    apart = min(count, expert_adapters(model, learnt)) if shards.whole_weights else 0
    return -(-(count - apart) // shards.model_parallel) + -(-apart // (shards.expert_ranks * shards.pipeline))


def _adapter_letters(model: Model | None, shards: Sharding, learnt: Trainable) -> dict[str, Number]:
    """The letters that only adapters on a frozen base have."""
    values: dict[str, Number] = {"r": learnt.rank, "P_s": -(-learnt.saved // shards.model_parallel)}
    if model is not None and learnt.kind == "dora":
        values["P_w"] = -(-wrapped_params(model, learnt.names) // shards.tensor)
    if learnt.remade:
        values["P_a"] = -(-learnt.remade // shards.tensor)
    if model is not None and frozen_leading_layers(learnt.kind):
        values["L_p"] = max(0, model.L - frozen_leading_layers(learnt.kind))
    return values


def _loss(book: FactBook, framework: str, stage: str, model: Model | None, shards: Sharding) -> Loss:
    """What the job's loss holds of the logits."""
    word, kernel = book.word("train.precision"), book.word("train.loss_kernel")
    return find_loss(
        LossQuery(
            tuple((name, book.version(f"version.{name}") if name else None) for name in lineage(framework)),
            stage,
            family=model.family if model else "",
            transformers=book.version("version.transformers"),
            converted=bool(named_for(losses()["outputs_in_fp32"], framework)) and _runs_autocast(book, shards),
            autocast=_runs_autocast(book, shards),
            double=None if word is None else word == "fp32",
            divided=shards.tensor > 1,
            compiled=None if kernel is None else kernel == "compiled",
            reads=book.word("train.logits_dtype") or "",
        )
    )


def _framework_model(model: Model | None, framework: str, book: FactBook) -> Model | None:
    """The model as the framework builds it: some call torch's GELU where transformers writes it out, some have queries, keys and values in
    one matrix; LLaMA Pro adds layers."""
    if model is None:
        return None
    if book.word("train.finetuning") == "llama_pro":
        model = model._replace(L=model.L + (book.count("train.trainable_layers") or 0))
    if model.act == "written" and traits_of(framework).fused_gelu:
        model = model._replace(act="fused")
    return model._replace(fused_qkv=True) if traits_of(framework).views_of_qkv and not model.latent else model


#: Phases in which the weights may not be there yet.
_BEFORE_WEIGHTS = ("model_load", "init", "dataset", "unknown")


def _too_few_bytes_for_fp32(book: FactBook, role: Role, shards: Sharding, params: int) -> bool:
    """Whether what was allocated has room for whole weights in 16 bits and none for fp32, where a 16-bit run does not say how they were
    loaded. Without a setting of precision the file may not be what ran: that is a finding, not a width."""
    phase = book.word("log.phase") or "unknown"
    whole_on_card = role.hosts and shards.whole_weights and phase not in _BEFORE_WEIGHTS
    half = book.word("train.precision") in ("bf16", "fp16")
    allocated = (
        book.size("log.allocated") if whole_on_card and half else None
    )  # read only where it decides: each fact that is read narrows what read_set_memo may reuse
    return allocated is not None and 2 * params <= allocated.low and 4 * params > allocated.high


def _runs_autocast(book: FactBook, shards: Sharding) -> Truth:
    """Whether a forward in 16 bits runs under autocast, whose outputs accelerate converts to fp32. DeepSpeed goes without."""
    if shards.zero:
        return False
    word = book.word("train.precision")
    return None if word is None else word in ("bf16", "fp16")


def _presumed_facts(book: FactBook, role: Role) -> list[str]:
    """Missing facts that the figures presume a value for: supervised training, SDPA."""
    presumed = ("model.attention",) if book.word("model.denoiser") else ("train.stage", "model.attention")
    return [name for name in presumed if role.trained and book.value(name) is None]
