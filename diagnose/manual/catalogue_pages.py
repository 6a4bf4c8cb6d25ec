"""The models and cards that are known without being told their dimensions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from diagnose import rule_files
from diagnose.manual.blocks import Block, Grid, Heading, Paragraph, code
from diagnose.manual.rule_wording import say
from diagnose.phrases import Lang


def models(lang: Lang) -> Iterator[Block]:
    """Every model by family, with the dimensions that decide its memory."""
    families = rule_files.table("models").values()
    yield Paragraph(say("models_intro", lang, count=sum(len(family["models"]) for family in families)))
    head = tuple(say(word, lang) for word in ("model", "parameters", "layers", "hidden", "heads", "vocabulary", "longest"))
    for family in families:
        yield Heading(2, family["family"])
        yield Grid(head, tuple(_model(entry) for entry in family["models"]))


def _model(entry: Mapping[str, Any]) -> tuple[str, ...]:
    heads = f"{entry['num_attention_heads']} / {entry['num_key_value_heads']}"
    figures = (entry["num_hidden_layers"], entry["hidden_size"], heads, entry["vocab_size"], entry.get("max_position_embeddings", ""))
    return code(entry["id"]), f"{entry['total_params'] / 1e9:.2f} B", *map(str, figures)


def cards(lang: Lang) -> Iterator[Block]:
    """Every card, with the totals that it prints."""
    entries = [card for table in rule_files.table("hardware").values() for card in table.get("cards", ())]
    yield Paragraph(say("cards_intro", lang, count=len(entries)))
    head = tuple(say(word, lang) for word in ("card", "names", "capability", "printed", "computes"))
    yield Grid(head, tuple(_card(card) for card in entries))


def _card(card: Mapping[str, Any]) -> tuple[str, ...]:
    printed = sorted({*card.get("seen", ()), *card.get("recalled", ())}, key=float)
    able = [
        what
        for key, what in (("bf16", "bf16"), ("fp8", "fp8"), ("fa2", "flash attention 2"), ("fa3", "flash attention 3"))
        if card.get(key)
    ]
    return code(card["key"]), ", ".join(card["names"]), str(card.get("compute_capability") or ""), ", ".join(printed), ", ".join(able)
