"""Which tensors of logits shape a loss keeps: rules/losses.yaml, typed, and the entry that fits a job."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache, lru_cache
from typing import Any, cast

from diagnose import rule_files
from diagnose.adapters.schema.framework_tables import lineage
from diagnose.records import NamedTuple
from diagnose.release_spans import releases
from diagnose.ternary import Truth, all_of, any_of, not_
from diagnose.units import Version
from diagnose.word_conditions import Conditions, conditions, hold


class Block(NamedTuple):
    """One tensor of logits shape: bytes per logit, from `least` to `most` where releases differ. `shifted`: a token less per row; `many`:
    made only of more than one row."""

    name: str
    bytes: int
    least: int
    most: int
    shifted: bool = False
    many: bool = False


class Loss(NamedTuple):
    """The blocks of a loss in the order of allocation: `call` during the loss call, `backward` when backward starts, `kept` while a model
    without gradients runs after it, `beside` those of that model. `completion`: only completion tokens have logits; `always`: that model
    runs even without a reference model; `presumed`: taken where it may hold and the release is unknown."""

    name: str
    call: tuple[Block, ...]
    backward: tuple[Block, ...]
    kept: tuple[Block, ...]
    beside: tuple[Block, ...]
    completion: bool
    always: bool
    presumed: bool
    source: str


#: The lists of blocks of a loss.
LISTS = ("call", "backward", "kept", "beside")


@cache
def losses() -> dict[str, Any]:
    return cast("dict[str, Any]", rule_files.table("losses"))


def parse_block(text: str) -> Block:
    """A block as it is written: NAME BYTES, then LOW..HIGH, shifted, many. Raises ValueError for any other text."""
    match = re.fullmatch(r"(\w+) (\d+)(?: (\d+)\.\.(\d+))?((?: shifted| many)*)", text)
    if not match:
        raise ValueError(f"not a block of a loss: {text}")
    size = int(match[2])
    return Block(match[1], size, int(match[3] or size), int(match[4] or size), "shifted" in match[5], "many" in match[5])


def named_for(entries: Collection[str], framework: str) -> str:
    """The name under which a table holds what is true of a framework: its own, else that of the nearest one that it extends; empty where
    the table has neither."""
    return next((name for name in lineage(framework) if name in entries), "")


@cache
def _entries() -> tuple[tuple[Conditions, Loss], ...]:
    return tuple((conditions(entry["when"]), _parse_loss(entry)) for entry in losses()["losses"])


def _parse_loss(entry: dict[str, Any]) -> Loss:
    call, backward, kept, beside = (tuple(parse_block(text) for text in entry.get(name, ())) for name in LISTS)
    completion, always, presumed = (bool(entry.get(mark, False)) for mark in ("completion", "always", "presumed"))
    return Loss(entry["name"], call, backward, kept, beside, completion, always, presumed, entry["source"])


class LossQuery(NamedTuple):
    """What decides which loss a job has: its framework with those that it extends, nearest first, each with its release (`lineage`), stage,
    model family, release of transformers; `converted`: accelerate hands the trainer fp32 logits; `autocast`: the forward runs under it;
    `double`: all is computed in fp32; `divided`: every rank has the logits of a part of the vocabulary; `compiled`: torch.compile fuses the
    loss; `reads`: the precision of the logits that it reads, where that is said."""

    lineage: tuple[tuple[str, Version | None], ...]
    stage: str
    family: str = ""
    transformers: Version | None = None
    converted: Truth = False
    autocast: Truth = None
    double: Truth = None
    divided: Truth = False
    compiled: Truth = None
    reads: str = ""


@lru_cache(maxsize=256)
def find_loss(job: LossQuery) -> Loss:
    """The loss of a job: the first entry whose conditions surely hold, its ranges widened by earlier entries that may hold. Raises
    ValueError where none holds."""
    run = {"framework": [name for name, _ in job.lineage], "stage": job.stage, "transformers": job.transformers, **_conditions(job)}
    may: list[Loss] = []
    for when, loss in _entries():
        release = next((release for name, release in job.lineage if name in when.get("framework", ())), None)
        holds = hold(when, {**run, "version": release}.__getitem__)
        if holds is None or holds:
            may.append(loss)
        if holds:
            presumed = next((candidate for candidate in may if candidate.presumed), loss)
            return _widen(presumed, [candidate for candidate in may if candidate is not presumed])
    raise ValueError("rules/losses.yaml: the last entry of `losses` has to hold for every job")


def _conditions(job: LossQuery) -> dict[str, Truth]:
    """Truth of the conditions of rules/losses.yaml that are neither names nor releases."""
    plain, own = (_as_of(losses()[name].get(job.family), job.transformers) for name in ("plain_loss", "own_loss"))
    upcast = False if plain else releases("<4.46").holds(job.transformers)
    if job.reads in ("bf16", "fp16") or (job.reads == "model" and not upcast):  # whatever the model does with labels
        plain, own, upcast = True, False, False
    return {
        "plain_loss": plain,
        "whole_rows": job.family in losses()["whole_rows"],
        "in_fp32": job.double,
        "divided": job.divided,
        "compiled": job.compiled,
        "in_16_bits": False if plain is False else all_of([plain, not_(job.autocast), not_(job.double or False)]),
        "own_loss": own,
        "fp32": any_of([upcast, job.converted]),
    }


def _as_of(span: str | None, release: Version | None) -> Truth:
    """Whether what a family does till some release (`span`; "": in all, None: it does not) holds in this one."""
    return False if span is None else not span or releases(span).holds(release)


def _widen(loss: Loss, others: list[Loss]) -> Loss:
    """The loss with, block by block, the range over all that may be in its place."""
    if not others:
        return loss
    call, backward, kept, beside = (_unite_blocks(getattr(loss, name), [getattr(other, name) for other in others]) for name in LISTS)
    return loss._replace(call=call, backward=backward, kept=kept, beside=beside)


def _unite_blocks(blocks: tuple[Block, ...], others: list[tuple[Block, ...]]) -> tuple[Block, ...]:
    lists = [{block.name: block for block in blocks_of_loss} for blocks_of_loss in (blocks, *others)]
    names = dict.fromkeys(name for blocks_of_loss in lists for name in blocks_of_loss)
    united: list[Block] = []
    for name in names:
        same_name = [blocks_of_loss[name] for blocks_of_loss in lists if name in blocks_of_loss]
        least = min(block.least for block in same_name) if len(same_name) == len(lists) else 0
        size = lists[0][name].bytes if name in lists[0] else 0
        united.append(same_name[0]._replace(bytes=size, least=least, most=max(block.most for block in same_name)))
    return tuple(united)
