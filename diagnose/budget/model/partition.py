"""The part of a model on one card: widths, layers and parameters under tensor, pipeline, sequence and expert parallelism."""

from __future__ import annotations

from diagnose.budget.model.formulas import Number, Span
from diagnose.budget.model.state_sharding import Sharding
from diagnose.catalogue import Model

#: The busiest rank of an expert group is met by up to so many times the tokens of an even spread: an upper end, not a measurement.
IMBALANCE = 2


def letters(model: Model, shards: Sharding) -> dict[str, Number]:
    """The dimensions that one card computes with: tensor parallelism divides widths, pipeline parallelism layers. Sequence parallelism
    divides tokens instead (T of the layers), so that the layers' widths count in full."""
    t = shards.tensor
    inner = 1 if shards.sequence else t
    values: dict[str, Number] = {
        "h": model.h,
        "V": -(-model.V // t),
        "f": -(-model.widest // inner),
        "L": shards.stage_layers(model.L),
        "a": model.a if shards.sequence and model.latent else -(-model.a // t),
        "q": -(-model.q // inner),
        "k": -(-model.k // inner),
        "d": model.d,
        "P_layer": layer_params_on_card(model, shards),
    }
    if shards.second:
        values["N_2"] = shards.second
    if model.uneven:
        values |= {"h_p": -(-model.uneven.per_layer // inner)}
    if model.disentangled:
        values["r_d"] = model.disentangled
    if model.experts:
        moe = model.experts
        met: Number = moe.per_token if shards.expert < 2 else Span(moe.per_token, moe.per_token, IMBALANCE * moe.per_token)
        values |= {"E": moe.count, "k_e": met, "L_d": min(moe.dense_layers, model.L)}
        values |= {"f_e": -(-moe.width // inner), "f_s": -(-moe.shared // inner)}
    if model.recurrent:
        own = model.recurrent
        values |= {"e_l": own.every, "k_l": -(-own.key // inner), "v_l": -(-own.value // inner)}
    if model.latent:
        low = model.latent
        values |= {"r_q": low.q_rank, "r_kv": low.kv_rank, "d_r": low.rope_dim, "d_n": low.nope_dim, "d_v": low.v_dim}
    return values


def layer_params_on_card(model: Model, shards: Sharding) -> int:
    """Parameters of the largest layer on one card, of whose experts the group of experts has a part each."""
    if model.experts is None or not shards.parts_experts:
        return -(-model.layer_params() // shards.tensor)
    every = model.experts.count * model.experts.expert_params(model.h)
    return -(-(model.layer_params() - every) // shards.tensor) + -(-every // shards.expert_ranks)


def params_on_card(model: Model | None, params: int, shards: Sharding) -> int:
    """Parameters on one card before states are sharded. Of a pipeline that of the larger end stage: the first has the embedding, the last
    the head. Experts are divided among an expert group unless weights are sharded over all ranks anyway."""
    ends = largest = 0
    if model is not None and shards.pipeline > 1 and params >= model.embedding_params + model.head_params:
        ends = model.embedding_params + model.head_params
        largest = max(model.embedding_params, model.head_params)
    body, apart = params - ends, 0
    if model is not None and model.experts is not None and shards.parts_experts and shards.whole_weights:
        apart = min(body, model.moe_layers * model.experts.count * model.experts.expert_params(model.h))
    stage, layers = (shards.stage_layers(model.L), model.L) if model is not None and any(shards.ends) else (1, shards.pipeline)
    own = -(-apart * stage // (shards.expert_ranks * layers))
    return -(-(body - apart) * stage // (shards.tensor * layers)) + own + -(-largest // shards.tensor)


def state_ranks(model: Model | None, params: int, shards: Sharding) -> Number | None:
    """Over how many ranks the states of a card's parameters are divided. Experts of an expert group have fewer copies than other weights,
    but the states of the whole model are still spread over all cards: a card's share is that of the whole."""
    if shards.group is None:
        return None
    if not shards.parts_experts or not shards.whole_weights or model is None or model.experts is None:
        return shards.group
    apart = params_on_card(model, params, shards)
    together = params_on_card(model, params, shards.without_experts())
    return max(1.0, shards.group * apart / together) if together else shards.group
