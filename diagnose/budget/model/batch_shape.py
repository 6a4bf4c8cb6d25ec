"""Rows and tokens of one forward pass. Lengths are upper bounds: the longest row that the settings allow."""

from __future__ import annotations

from diagnose import rule_files
from diagnose.budget.model.formulas import Number
from diagnose.budget.model.job_roles import Role
from diagnose.budget.model.software_table import table
from diagnose.catalogue import Model
from diagnose.facts import FactBook
from diagnose.records import NamedTuple
from diagnose.traits import traits_of


class Batch(NamedTuple):
    """`letters`: b rows of the micro batch, B rows of the forward pass, s tokens per row, G completion tokens per row, T tokens of the
    forward pass on one card, s_e and T_e what an encoder reads. `solved`: s is what the failed request implies, not the limit. `unknown`:
    facts that are missing."""

    letters: dict[str, Number]
    solved: bool
    unknown: tuple[str, ...] = ()


def batch(book: FactBook, role: Role, stage: str) -> Batch:
    """Rows and tokens of a role's forward pass. Frozen roles of a rollout job see the rows of scoring, a job that does not train those of
    evaluation."""
    names = ("train.micro_batch_size",) if role.trained else ("rollout.micro_batch", "rollout.logprob_batch", "train.micro_batch_size")
    names = ("eval.batch_size",) if role.predicts else names
    rows = next((count for name in names if (count := rows_at_once(book, name))), None)
    length, completion, solved = _row_length(book, stage)
    if role.model is not None and role.model.source is not None:
        return _encoder_decoder_batch(book, role.model, role.model.source, rows, length)
    if role.model is not None and role.model.fixed:
        pixels = book.count("data.image_pixels") if role.model.kind == "patches" else None
        length = role.model.patches_of(pixels) if pixels else role.model.fixed
    if book.word("model.denoiser") and role.trained:
        return _latent_batch(book, rows)
    budget = book.count("train.token_budget")
    if budget and rows is None:
        rows, length = 1, budget
    unknown = [name for name, value in ((names[-1], rows), ("train.max_seq_len", length)) if value is None]
    letters: dict[str, Number] = {}
    texts = (2 if stage in table()["pairs"] else book.count("data.texts_per_row") or 1) * (rows or 0)
    if rows is not None:
        letters |= {"b": rows, "B": texts}
    if length is not None:
        letters["s"] = length
    virtual = book.count("prompt.tokens") if table()["prompts"].get(book.word("train.finetuning") or "") else None
    if virtual:
        letters["n_p"] = virtual
    if virtual and length is not None and table()["prompts"][book.word("train.finetuning") or ""].get("virtual"):
        letters["s"] = length = length + virtual
    if completion is not None:
        letters["G"] = completion
    if rows is not None and length is not None:
        tokens = texts * length
        parallel = max(1, book.count("parallel.context") or 1)
        letters["T"] = -(-min(tokens, budget or tokens) // parallel)
    return Batch(letters, solved, tuple(unknown))


def rows_at_once(book: FactBook, name: str) -> int | None:
    """The rows that the knob `name` lets into a forward pass. Where a round of rollouts is one step's rows (TRL ppo_trainer.py
    local_batch_size), no more are there to be scored."""
    rows, micro, steps = book.count(name), book.count("train.micro_batch_size"), book.count("train.gradient_accumulation")
    if name == "rollout.logprob_batch" and rows and micro and steps and traits_of(book.word("train.framework")).rounds_of_a_step:
        return min(rows, micro * steps)
    return rows


#: Pixels of a position of the latent: VAEs of images shrink each side to an eighth.
LATENT = 64


def _latent_batch(book: FactBook, rows: int | None) -> Batch:
    """Rows, and positions of the latent of one image or clip (n_l): VAEs of video make one frame of the first and one of each few more."""
    side = book.count("data.image_size")
    pixels = book.count("data.image_pixels") or (side * side if side else None)
    letters: dict[str, Number] = {} if rows is None else {"b": rows, "B": rows}
    together = rule_files.table("denoiser_layers").get(book.word("model.denoiser") or "", {}).get("frames")
    frames = book.count("data.frames") if together else 1
    if pixels and frames:
        letters["n_l"] = -(-pixels // LATENT) * (1 if not together else (frames - 1) // together + 1)
    needed = {"train.micro_batch_size": rows, "data.image_size": pixels, "data.frames": frames}
    return Batch(letters, False, tuple(name for name, value in needed.items() if value is None))


def _encoder_decoder_batch(book: FactBook, model: Model, source: Model, rows: int | None, cap: int | None) -> Batch:
    """Rows and tokens of an encoder with a decoder. The length limit is that of the source; targets have one of their own, and at most as
    many tokens as the model has positions."""
    limits = [limit for limit in (book.count("train.max_target_len"), model.max_len) if limit]
    source_tokens, target_tokens = source.fixed or cap, min(limits) if limits else None
    needed = {"train.micro_batch_size": rows, "train.max_seq_len": source_tokens, "train.max_target_len": target_tokens}
    letters: dict[str, Number] = {} if rows is None else {"b": rows, "B": rows}
    if source_tokens is not None:
        letters |= {"s_e": source_tokens} if rows is None else {"s_e": source_tokens, "T_e": rows * source_tokens}
    if target_tokens is not None:
        letters |= {"s": target_tokens} if rows is None else {"s": target_tokens, "T": rows * target_tokens}
    return Batch(letters, False, tuple(name for name, value in needed.items() if value is None))


def _row_length(book: FactBook, stage: str) -> tuple[int | None, int | None, bool]:
    """(tokens per row, completion tokens per row, whether the failed request implies them)."""
    prompt, completion = book.count("rollout.prompt_len"), book.count("rollout.completion_len")
    if stage in table()["rollouts"] and prompt is not None and completion is not None:
        prompt_seen, completion_seen = book.count("data.prompt_tokens"), book.count("data.completion_tokens")
        prompt, completion = min(prompt, prompt_seen or prompt), min(completion, completion_seen or completion)
        return prompt + completion, completion, bool(prompt_seen or completion_seen)
    cap = book.count("train.max_seq_len")
    row = book.count("data.row_tokens")
    longest = book.count("data.longest_sample")
    if book.switch("train.packing"):
        longest = None  # packed rows are filled up to the cap
    limits = [count for count in (cap, row, longest) if count]
    return (min(limits) if limits else None), None, bool(row)
