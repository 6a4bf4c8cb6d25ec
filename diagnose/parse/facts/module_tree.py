"""Models printed with print(model): dimensions, adapters and quantisation, from their modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diagnose.facts import Fact, Value
from diagnose.parse.text.lazy_re import lazy_compile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from diagnose.parse.text.lines import Page

REACH = 256 << 10
TREE = 64 << 10  # bytes of one printed model

_BEGIN = lazy_compile(
    rb"\b[A-Z]\w{3,60}\(\r?\n {1,8}\((?:model|base_model|transformer|module|_fsdp_wrapped_module|language_model|gpt_neox)\): "
)
_EMBEDDING = lazy_compile(
    rb"\((?:embed_tokens|wte|word_embeddings|embed_in|tok_embeddings)\): (?:ModulesToSaveWrapper\(\s{1,20}\(original_module\): )?"
    rb"\w{0,30}Embedding\((\d{1,8}), (\d{1,6})"
)
_QUERY = lazy_compile(
    rb"\((?:q_proj|query|query_key_value|qkv_proj|Wqkv|wq)\): [^\n]{0,80}?(?:\n {1,80}\(base_layer\): [^\n]{0,40}?)?in_features=(\d{1,6}),"
)
_LAYERS = lazy_compile(rb"\((?:0-(\d{1,4}))\): (\d{1,4}) x (\w{0,60}(?:Layer|Block)\w{0,10})\(")
_ADAPTER = lazy_compile(rb"\(lora_A\): ModuleDict\(\s{1,80}\(\w{1,40}\): Linear\(in_features=\d{1,8}, out_features=(\d{1,6})")


def facts(pages: Iterable[Page]) -> Iterator[Fact]:
    """Facts from the first printed model, in scripts usually the trained one."""
    for page in pages:
        match = _BEGIN.search(page.excerpt.raw, 0, REACH) if page.excerpt.offset < REACH else None
        if match is not None:
            yield from _model_facts(page, match.start())
            return


def _model_facts(page: Page, begin: int) -> Iterator[Fact]:
    raw, end = page.excerpt.raw, begin + TREE

    def fact(name: str, value: Value, at: int) -> Fact:
        return Fact(name, value, "log", page.witness(page.excerpt.offset + at))

    embedding = _EMBEDDING.search(raw, begin, end)
    if embedding is not None:
        yield fact("model.vocab_size", int(embedding[1]), embedding.start())
        width = _QUERY.search(raw, begin, end)
        if width is not None and width[1] == embedding[2]:  # some embeddings are narrower than the layers
            yield fact("model.hidden_size", int(embedding[2]), embedding.start())
    layers = [match for match in _LAYERS.finditer(raw, begin, end) if int(match[2]) == int(match[1]) + 1 and b"ision" not in match[3]]
    if len(layers) == 1:  # towers of several kinds have blocks of their own
        yield fact("model.layers", int(layers[0][2]), layers[0].start())
    ranks = {int(match[1]): match.start() for match in _ADAPTER.finditer(raw, begin, end)}
    if ranks:
        yield fact("train.finetuning", "lora", next(iter(ranks.values())))
    if len(ranks) == 1:
        yield fact("lora.rank", *next(iter(ranks.items())))
    for word, bits in ((b"Linear4bit(", 4), (b"Linear8bitLt(", 8)):
        at = raw.find(word, begin, end)
        if at >= 0:
            yield fact("model.quantized_bits", bits, at)
            if bits == 8:
                yield fact("model.quantization", "int8", at)
            return
