"""The dimensions of a model, and the parameters counted from them (`Model.counted`)."""

from __future__ import annotations

from dataclasses import dataclass

from diagnose.records import NamedTuple


@dataclass(slots=True, unsafe_hash=True)
class Experts:
    """A mixture-of-experts block. `shared`: width of the shared expert (0: none); `dense_layers`: number of leading dense layers;
    `router_fp32`: the router reads an fp32 copy of its input; `routed_fp32`: routing weights multiply the experts' outputs in fp32."""

    count: int
    per_token: int
    width: int
    shared: int = 0
    dense_layers: int = 0
    router_bias: bool = False
    expert_bias: bool = False
    shared_gate: bool = False
    router_fp32: bool = False
    routed_fp32: bool = False

    def params(self, h: int) -> int:
        """Parameters of router, experts and shared expert of one layer of hidden size `h`."""
        router = h * self.count + (self.count if self.router_bias else 0)
        shared = 3 * h * self.shared + (h if self.shared_gate else 0)
        return router + self.count * self.expert_params(h) + shared

    def expert_params(self, h: int) -> int:
        """Parameters of one routed expert."""
        return 3 * h * self.width + (2 * self.width + h if self.expert_bias else 0)


class Latent(NamedTuple):
    """Dimensions of multi-head latent attention; `q_rank` 0: queries are not compressed."""

    q_rank: int
    kv_rank: int
    rope_dim: int
    nope_dim: int
    v_dim: int

    def params(self, h: int, a: int) -> int:
        """Parameters of one layer's projections and latent norms."""
        query = h * self.q_rank + self.q_rank + self.q_rank * a * (self.nope_dim + self.rope_dim)
        if not self.q_rank:
            query = h * a * (self.nope_dim + self.rope_dim)
        pair = h * (self.kv_rank + self.rope_dim) + self.kv_rank + self.kv_rank * a * (self.nope_dim + self.v_dim)
        return query + pair + a * self.v_dim * h


class Recurrent(NamedTuple):
    """Layers of linear attention (gated delta rule) in place of softmax attention in all layers but each `every`-th. `key`, `value`: widths
    of all heads together; `heads`: of values; `kernel`: of the convolution before them."""

    every: int
    key: int
    value: int
    heads: int
    kernel: int

    def params(self, h: int) -> int:
        """Parameters of one such layer (transformers modeling_qwen3_next.py Qwen3NextGatedDeltaNet): projections, gates, convolution, a
        decay and a bias per head, a norm of one head, the output."""
        mixed = 2 * self.key + self.value
        return (
            h * (mixed + self.value) + 2 * h * self.heads + mixed * self.kernel + 2 * self.heads + self.value // self.heads + self.value * h
        )


class Vision(NamedTuple):
    """A vision tower with its projector. `pixels_per_token`: pixels per token of the decoder; `merge`: patches per side that are merged
    into one such token; `out`: the decoder's width."""

    kind: str
    hidden: int
    depth: int
    width: int
    heads: int
    patch: int
    pixels_per_token: int
    params: int
    merge: int = 1
    out: int = 0


class Uneven(NamedTuple):
    """A model whose layers differ (Gemma 4). Each layer has an embedding of its own of width `per_layer`, with linears to and from it;
    each `every`-th attends to all tokens, with heads of width `wide_d`; the last `shared` ones reuse keys and values of earlier layers,
    and their MLP is `widening` times as wide."""

    per_layer: int
    wide_d: int
    every: int
    shared: int
    widening: int

    def kinds(self, layers: int) -> tuple[tuple[bool, bool, int], ...]:
        """The kinds of layers: whether they attend to all tokens, whether they reuse keys and values, and how many there are."""
        own_kv = layers - self.shared
        wide, own_wide = layers // self.every, own_kv // self.every
        own = (True, False, own_wide), (False, False, own_kv - own_wide)
        return *own, (True, True, wide - own_wide), (False, True, self.shared - wide + own_wide)


class Model(NamedTuple):
    """Dimensions of one model, letters as in docs/memory.md: h, f, L, a, kv, d, V.

    `norm_kind` is rms, rms_wide (product in fp32: Gemma, OLMo-2) or layernorm; `norm_vectors` how many vectors of width h
    one norm holds; `qk_norm` none, head or full. `norms_after` of the `norms` stand behind attention and MLP; `parallel`: attention
    and MLP read the same residual. `fused_qkv`, `fused_gate_up`: one linear makes them; `rotary`: queries and keys are rotated,
    `partial_rotary`: by concatenating a rotated and a plain part. `act` of a plain MLP: fused (one operator), written (in python
    operators) or relu. `dropouts`: of the residual stream per layer, as published; `attention_dropout` likewise; `native_softmax`:
    eager scores are not turned into fp32; `softcap`: they are capped by a tanh; `broadcasts`: one key head meets all queries without
    being repeated; `scaled_residual`: what is added to the residual stream is multiplied first; `inner_dropout`: the MLP's product has a
    dropout; `head_major`: queries are copied head by head; `norm_keeps_input`: RMSNorms multiply their 16-bit input, not its fp32 copy;
    `relative_bias`: rows of a learned bias per head and distance that is added to the scores (T5); `disentangled`: rows of the table of
    relative positions that queries and keys meet (DeBERTa). Of `uneven` layers `d` and `f` are the narrowest, while q, k and the largest
    layer are those of the last one. `embed` is the width of the embedding where it is not h, `positions` the rows of a learned position
    table. `params` counts everything once (tied heads once), `text_params` without the vision tower; `published`: how its weights
    are quantised as its makers publish them.

    `recurrent`: layers without softmax attention among the others; `gated_attention`: queries come with a gate as wide as they are.

    `kind`: a decoder, an encoder, an encoder_decoder, or one that reads patches of images. `source` is the encoder whose output every
    layer attends to as well, a stack of its own; `fixed` how many tokens a row has whatever the settings say (patches, frames).
    `stem_params`: convolutions and single vectors before the first layer; `head_dense`: the head begins with a linear of width h and a
    norm (masked language models); `pooler`: a classifier begins with a linear of width h.
    """

    id: str
    family: str
    h: int
    f: int
    L: int
    a: int
    kv: int
    d: int
    V: int
    tied: bool
    params: int
    max_len: int = 0
    published: str = ""
    gated: bool = True
    norms: int = 2
    norm_kind: str = "rms"
    qkv_bias: bool = False
    qk_norm: str = "none"
    experts: Experts | None = None
    latent: Latent | None = None
    vision: Vision | None = None
    norm_vectors: int = 1
    o_bias: bool = False
    mlp_bias: bool = False
    embed: int = 0
    positions: int = 0
    embed_norm: bool = False
    final_norm: bool = True
    head_bias: bool = False
    sinks: bool = False
    norms_after: int = 0
    parallel: bool = False
    fused_qkv: bool = False
    fused_gate_up: bool = False
    rotary: bool = True
    partial_rotary: bool = False
    act: str = "fused"
    dropouts: int = 0
    attention_dropout: bool = False
    native_softmax: bool = False
    softcap: bool = False
    uneven: Uneven | None = None
    broadcasts: bool = False
    scaled_residual: bool = False
    inner_dropout: bool = False
    head_major: bool = False
    norm_keeps_input: bool = False
    relative_bias: int = 0
    disentangled: int = 0
    kind: str = "decoder"
    source: Model | None = None
    fixed: int = 0
    stem_params: int = 0
    head_dense: bool = False
    pooler: bool = False
    k_bias: bool = True
    recurrent: Recurrent | None = None
    gated_attention: bool = False

    def patches_of(self, pixels: int) -> int:
        """Tokens of an image of so many pixels, the class token among them, for a model that reads patches (the stem is their projection,
        its bias and the class token)."""
        area = (self.stem_params - 2 * self.h) // (3 * self.h)
        return pixels // area + 1 if area > 0 else self.fixed

    @property
    def q(self) -> int:
        """Projected query width a*d."""
        return self.a * (self.uneven.wide_d if self.uneven else self.d)

    @property
    def k(self) -> int:
        """Projected key (and value) width kv*d."""
        return self.kv * (self.uneven.wide_d if self.uneven else self.d)

    @property
    def widest(self) -> int:
        """The width of the widest MLP."""
        return self.f * (self.uneven.widening if self.uneven else 1)

    @property
    def per_layer(self) -> int:
        """Width of the layers' own embeddings, all layers together."""
        return self.L * self.uneven.per_layer if self.uneven else 0

    @property
    def text_params(self) -> int:
        return self.params - (self.vision.params if self.vision else 0)

    @property
    def embedding_params(self) -> int:
        """Token embedding, its projections if it is narrower than h, the layers' own embeddings, position tables and stem."""
        width = self.embed or self.h
        projections = 2 * width * self.h if width != self.h else 0
        if self.uneven:
            projections += self.per_layer * (self.V + self.h) + self.uneven.per_layer
        tables = self.positions * self.h + self.relative_bias * self.a
        tables += self.disentangled * self.h + self.norm_params if self.disentangled else 0
        return self.V * width + projections + tables + self.stem_params + (self.norm_params if self.embed_norm else 0)

    @property
    def head_params(self) -> int:
        """The output head; 0 if it is tied to the embedding."""
        dense = self.h * self.h + (self.h if self.mlp_bias else 0) + self.norm_params if self.head_dense else 0
        return (0 if self.tied else self.V * self.h) + (self.V if self.head_bias else 0) + dense

    @property
    def headless_params(self) -> int:
        """All parameters with the classifier's pooler, if any, in place of the output head."""
        return self.params - self.head_params + (self.h * self.h + self.h if self.pooler else 0)

    @property
    def norm_params(self) -> int:
        """One norm of width h."""
        return self.norm_vectors * self.h

    @property
    def attention_params(self) -> int:
        """Attention of one layer, without the norms before and after it."""
        if self.latent:
            return self.latent.params(self.h, self.a)
        count = (3 if self.gated_attention else 2) * self.h * self.q + 2 * self.h * self.k
        count += self.q + (2 if self.k_bias else 1) * self.k if self.qkv_bias else 0
        count += self.h if self.o_bias else 0
        count += {"none": 0, "head": 2 * self.d, "full": self.q + self.k}[self.qk_norm]
        return count + (self.a if self.sinks else 0)

    @property
    def mlp_params(self) -> int:
        """A dense MLP of width f."""
        matrices = 3 if self.gated else 2
        bias = (matrices - 1) * self.f + self.h if self.mlp_bias else 0
        return matrices * self.h * self.f + bias

    @property
    def moe_layers(self) -> int:
        """Layers whose MLP is a mixture of experts: the last ones."""
        return self.L - self.experts.dense_layers if self.experts else 0

    def layer_params(self, index: int = -1) -> int:
        """One decoder layer; by default the last one, which is the largest of any model we know."""
        if self.uneven:
            position = index % self.L
            return self._uneven_layer(self.uneven, (position + 1) % self.uneven.every == 0, position >= self.L - self.uneven.shared)
        is_sparse = self.experts and (index % self.L) >= self.L - self.moe_layers
        mlp = self.experts.params(self.h) if self.experts and is_sparse else self.mlp_params
        cross = self.attention_params + self.norm_params if self.source else 0
        return self.attention_params + cross + mlp + self.norms * self.norm_params

    def _uneven_layer(self, uneven: Uneven, wide: bool, borrows: bool) -> int:
        d = uneven.wide_d if wide else self.d
        attention = 2 * self.h * self.a * d + d + (0 if borrows else 2 * self.h * self.kv * d + d)
        mlp = 3 * self.h * self.f * (uneven.widening if borrows else 1)
        return attention + mlp + 2 * self.h * uneven.per_layer + self.norms * self.norm_params

    @property
    def counted(self) -> int:
        """The total number of parameters by the dimensions."""
        if self.uneven:
            layers = sum(count * self._uneven_layer(self.uneven, wide, borrows) for wide, borrows, count in self.uneven.kinds(self.L))
            return self.embedding_params + self.head_params + self.norm_params + layers + (self.vision.params if self.vision else 0)
        layers = (self.L - self.moe_layers) * self.layer_params(0) if self.moe_layers < self.L else 0
        layers += self.moe_layers * self.layer_params(-1)
        if self.recurrent:
            own = self.L - self.L // self.recurrent.every
            layers += own * (self.recurrent.params(self.h) - self.attention_params)
        stem = self.embedding_params + self.head_params + (self.norm_params if self.final_norm else 0)
        return stem + layers + (self.vision.params if self.vision else 0) + (self.source.params if self.source else 0)
