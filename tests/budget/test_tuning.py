"""What lies on a card depends on what is trained and how the framework holds it: adapters, quantised bases, frozen layers, fused losses."""

from __future__ import annotations

import re
from typing import Any

import pytest
from books import GIB, book, event
from collected import for_each

from diagnose.budget.attribution.request_tensor import attribute
from diagnose.budget.derived.derived_facts import derive_facts
from diagnose.budget.model.job_roles import roles
from diagnose.budget.model.ledger import Term
from diagnose.budget.model.role_setup import setup
from diagnose.budget.moments.role_ledgers import ledgers
from diagnose.catalogue import model_of_config
from diagnose.facts import Fact, FactBook, Witness

LLAMA_8B: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-8B",
    "train.framework": "llamafactory",
    "train.stage": "sft",
    "train.precision": "bf16",
    "train.micro_batch_size": 2,
    "train.max_seq_len": 2048,
    "train.gradient_checkpointing": "enabled",
    "parallel.world": 1,
}


def gib(known: FactBook, moment: str, *groups: str) -> float:
    found = ledgers(known)[0].moment(moment)
    assert found is not None, moment
    return (found.of(*groups) if groups else found.total).bytes / GIB


def test_what_a_framework_makes_of_weights_outranks_its_default_load() -> None:
    """LLaMA-Factory loads bf16 and casts what is trained to fp32; a load that somebody asked for is believed."""
    known = book(LLAMA_8B, train__finetuning="full")
    known.learn([Fact("train.load_dtype", "bf16", "default", Witness("default"))])
    assert gib(known, "init", "weights") == pytest.approx(29.92, abs=0.01)
    assert gib(book(LLAMA_8B, train__finetuning="full", train__load_dtype="bf16"), "init", "weights") == pytest.approx(14.96, abs=0.01)


def test_frozen_layers_stay_as_loaded() -> None:
    """2P for all, 2 more for each of the 872 million trained, whose gradients are fp32."""
    known = book(LLAMA_8B, train__finetuning="freeze", model__trainable_params=872448000)
    assert gib(known, "init", "weights") == pytest.approx(14.96 + 1.63, abs=0.01)
    assert gib(known, "optimizer_step", "gradients") == pytest.approx(3.25, abs=0.01)


@for_each(
    "said, word",
    [
        ({"model__trainable_params": 20971520}, "lora"),
        ({"model__quantization": "nf4"}, "lora"),
        ({"model__trainable_params": 8030261248}, None),
        ({"model__trainable_params": 1003782656, "fsdp__sharding": "full_shard"}, None),
        ({}, None),
    ],
)
def test_adapters_are_told_by_figures_where_nobody_names_them(said: dict[str, Any], word: str | None) -> None:
    """A few trained parameters, or a quantised base; under FSDP the count may be one rank's shard."""
    known = book(LLAMA_8B, **said)
    assert {made.name: made.value for made in derive_facts(known, ledgers(known), ())}.get("train.finetuning") == word


def test_a_quantised_base_is_whole_on_every_card_unless_its_storage_can_be_flattened() -> None:
    said = {"model__quantization": "nf4", "train__finetuning": "lora", "zero__stage": 3, "parallel__world": 4}
    alone = gib(book(LLAMA_8B, train__framework="trl", **said), "load", "weights")
    assert alone > 3 * gib(book(LLAMA_8B, **said), "load", "weights")
    assert gib(book(LLAMA_8B, version__bitsandbytes="0.42.0", **said), "load", "weights") > 4


def test_a_base_that_comes_packed_is_whole_on_every_card_whatever_a_setting_makes_of_others() -> None:
    """Integers of GPTQ are sharded by nothing and moved to the host by nothing; bitsandbytes does not quantise them again."""
    said = {"model__quantization": "nf4", "train__finetuning": "lora", "fsdp__sharding": "full_shard", "parallel__world": 4}
    packed = book(LLAMA_8B, model__stored_quantization="gptq", **said)
    assert gib(packed, "load", "weights") > 2 * gib(book(LLAMA_8B, **said), "load", "weights")
    assert gib(packed.changed({"fsdp.offload": "enabled"}), "load", "weights") == gib(packed, "load", "weights")


@pytest.mark.parametrize(
    ("framework", "release", "kept"),
    [("swift", "0.42.0", 2 * (3 * 4096 + 14336)), ("swift", "0.45.0", 0), ("trl", "0.42.0", 0)],
)
def test_inputs_of_old_4_bit_linears_outlive_checkpoints_that_are_not_reentrant(framework: str, release: str, kept: int) -> None:
    """MatMul4Bit kept them as an attribute of its node, which the hooks of torch's checkpointing do not see: 2 bytes per token of each
    layer's two norms, its attention and its MLP."""
    known = book(LLAMA_8B, train__finetuning="lora", train__framework=framework, version__bitsandbytes=release, model__quantization="nf4")
    found = ledgers(known)[0].moment("loss_backward")
    assert found is not None
    assert found.only("quantised_inputs").bytes == kept * 32 * 4096


def test_a_fused_loss_that_is_asked_for_takes_the_logits_out_of_the_failing_moment() -> None:
    """The loss failed with 16-bit and fp32 logits there; what if it were fused, none are."""
    known = book(LLAMA_8B, train__finetuning="lora", log__phase="loss", log__family="torch_cuda", log__requested="1.96 GiB")
    known.learn([Fact("train.loss_kernel", "none", "default", Witness("default"))])
    assert gib(known, "loss_call", "logits") == pytest.approx(2.94, abs=0.01)
    assert gib(known.changed({"train.loss_kernel": "liger"}), "loss_call", "logits") < 0.3


def test_scores_of_the_layer_in_hand_are_there_under_checkpointing() -> None:
    """Eager attention fails in its softmax: the scores before it are on the card though no layer keeps them."""
    said = {"model__attention": "eager", "train__finetuning": "lora", "log__family": "torch_cuda", "log__allocated": "20.00 GiB"}
    there = gib(book(LLAMA_8B, log__phase="attention", **said), "forward_end", "attention_scores")
    assert there == pytest.approx(2 * 2 * 2 * 32 * 2048 * 2048 / GIB, abs=0.001)


@pytest.mark.parametrize(
    ("requested", "phase", "frame", "more", "key"),
    [
        ("106.00 MiB", "optimizer_step", "torch/optim/adamw.py:_init_group|torch.zeros_like(", {"fsdp__sharding": "full_shard"}, "unit"),
        ("512.00 MiB", "attention", "m.py:forward|torch.nn.functional.scaled_dot_product_attention(", {"model__attention": "sdpa"}, "math"),
    ],
)
def test_tensors_of_sharded_optimizers_and_unfused_attention(
    requested: str, phase: str, frame: str, more: dict[str, Any], key: str
) -> None:
    """One FSDP unit of 218,112,000 parameters over 8 cards in fp32; 2 x 32 x 2048 x 2048 scores in 16 bits."""
    known = book(LLAMA_8B, train__finetuning="full", parallel__world=8, **more)
    best = attribute(known, ledgers(known), event(requested, phase, frame), 0)[0]
    assert (best.key.rpartition("_")[2], best.named) == (key, True)


@for_each(
    "framework, targets, padded",
    [
        ("litgpt", "q_proj,v_proj", ["2*(q + k)"]),
        ("litgpt", "q_proj", ["2*(q)"]),
        ("litgpt", "q_proj,k_proj,v_proj", []),
        ("transformers", "q_proj,v_proj", []),
    ],
)
def test_litgpt_keeps_what_it_pads_adapters_with(framework: str, targets: str, padded: list[str]) -> None:
    """Adapters on some of queries, keys and values: 2 bytes per output of those, in every layer; on all three nothing is padded."""
    adapters = {"train__finetuning": "lora", "lora__rank": 8, "lora__targets": targets, "train__gradient_checkpointing": "disabled"}
    found = ledgers(book(LLAMA_8B, train__framework=framework, **adapters))[0].moment("forward_end")
    assert found is not None
    layers = next(term for term in found.terms if term.key == "layers")
    assert re.findall(r"2\*\(q(?: \+ k)*\)", layers.symbols) == padded


@pytest.mark.parametrize(
    ("framework", "finetuning", "each"), [("torchtune", "full", 2), ("torchtune", "lora", 0), ("transformers", "full", 8)]
)
def test_torchtune_offloads_the_final_norm_as_well(framework: str, finetuning: str, each: int) -> None:
    """Its offload takes all that the forward saves but the input of a head that learns."""
    known = book(
        LLAMA_8B,
        train__framework=framework,
        train__precision="pure_bf16",
        train__finetuning=finetuning,
        lora__rank=8,
        lora__targets="q_proj",
        train__activation_offload=True,
    )
    found = ledgers(known)[0].moment("loss_call")
    assert found is not None and found.only("stem").bytes == each * 4096 * 2 * 2048


def term(known: FactBook, moment: str, key: str) -> Term:
    found = ledgers(known)[0].moment(moment)
    assert found is not None, moment
    return next(each for each in found.terms if each.key == key)


def adapter_count(known: FactBook) -> int:
    """Parameters that learn."""
    count = setup(known, roles(known)[0]).trainable.count
    assert count is not None
    return count


LORA = {"train__finetuning": "lora", "lora__rank": 16, "lora__targets": "all", "version__transformers": "4.57.1"}


@pytest.mark.parametrize(("compiled", "inputs"), [(True, 2), (False, 4)])
def test_a_compiled_layer_keeps_of_its_policy_what_backward_reads(compiled: bool, inputs: int) -> None:
    """Selective checkpointing of single operators: the MLP's output is kept by the policy and read by no backward."""
    said = {"train__framework": "torchtitan", "train__finetuning": "full", "train__gradient_checkpointing": "selective"}
    found = term(book(LLAMA_8B, **said, train__compile=compiled), "loss_call", "checkpoints_selective")
    assert found.size.bytes == (inputs * 4096 + 4 * 4096 + 2 * 1024 + 2 * 14336) * 32 * 2 * 2048


def test_dora_keeps_what_its_magnitudes_scale() -> None:
    """4 bytes per output of the seven linears under autocast: the linear's and the adapter's, 16 bits each. In backward three fp32
    tensors of the MLP's width are in hand."""
    plain, dora = (term(book(LLAMA_8B, lora__kind=kind, **LORA), "layer_backward", "layer_recomputed") for kind in ("lora", "dora"))
    tokens, hidden, width = 2 * 2048, 4096, 14336
    outputs = hidden + 2 * 1024 + hidden + 2 * width + hidden
    working = (12 * width + hidden) - (6 * width + 10 * hidden)
    assert dora.size.bytes - plain.size.bytes == (4 * outputs + working) * tokens


def test_dora_takes_the_norm_of_a_whole_weight() -> None:
    """Of down_proj: an identity of 14336 x 14336 in fp32 and 16 bits, or the 16-bit one and four fp32 matrices of the weight's size. Only
    what is more than the gradients of the layer counts in backward; before the loss all of it does where nothing is recomputed."""
    known = book(LLAMA_8B, lora__kind="dora", **LORA, train__gradient_checkpointing="disabled")
    whole = max(6 * 14336**2, 2 * 14336**2 + 16 * 14336 * 4096)
    assert term(known, "forward_end", "dora_norm").size.bytes == whole
    assert not any(each.key == "dora_norm" for moment in ledgers(known)[0].moments for each in moment.terms if moment.name == "loss_call")
    short = book(LLAMA_8B, lora__kind="dora", **LORA, train__max_seq_len=512)
    beside = (12 * 14336 + 4096) * 2 * 512
    assert term(short, "layer_backward", "dora_norm").size.bytes == whole - beside


def test_doras_largest_norm_need_not_be_the_last() -> None:
    """Queries are wider than values, which come after them: 16-bit identity and four fp32 matrices of 4096 x 4096."""
    said = LORA | {"lora__targets": "q_proj,v_proj"}
    known = book(LLAMA_8B, lora__kind="dora", **said, train__gradient_checkpointing="disabled")
    assert term(known, "forward_end", "dora_norm").size.bytes == (2 + 16) * 4096**2


@pytest.mark.parametrize(
    ("more", "each"), [({"lora__dropout": 0.05}, 2), ({"version__peft": "0.13.2"}, 2), ({"version__peft": "0.14.0"}, 0)]
)
def test_dora_with_dropout_keeps_every_weight_once_more(more: dict[str, Any], each: int) -> None:
    """The linear is computed again from a cast weight; from PEFT 0.14 on only where dropout makes another input."""
    known = book(LLAMA_8B, lora__kind="dora", **LORA, **more, train__gradient_checkpointing="disabled")
    found = ledgers(known)[0].moment("loss_call")
    assert found is not None and found.only("dora_weights").bytes == each * 32 * 218103808


@pytest.mark.parametrize(
    ("targets", "framework", "count"),
    [
        ("c_attn", "swift", 8 * (4096 + 3 * 4096) * 32),  # 4.19 million, as swift 2 prints
        ("all-linear", "swift", 17891328),  # 17.89 million
        ("c_attn", "litgpt", 8 * 3 * (4096 + 4096) * 32),
    ],
)
def test_an_adapter_on_one_matrix_has_one_input(targets: str, framework: str, count: int) -> None:
    """Queries, keys and values of the first Qwen are one matrix; LitGPT has an adapter for each of its parts."""
    known = book(LLAMA_8B, model="Qwen/Qwen-7B", train__finetuning="lora", lora__rank=8, lora__targets=targets, train__framework=framework)
    assert adapter_count(known) == count


def test_dora_and_adalora_have_parameters_of_their_own() -> None:
    """A magnitude per output, a singular value per rank; the importance of every parameter is three copies more."""
    states = {kind: term(book(LLAMA_8B, lora__kind=kind, **LORA), "optimizer_step", "moments") for kind in ("lora", "dora", "adalora")}
    count = 41943040  # 32 * 16 * the sums of the sides of seven linears
    assert states["lora"].size.bytes == 8 * count
    assert states["dora"].size.bytes == 8 * (count + 32 * (4096 + 2 * 1024 + 4096 + 2 * 14336 + 4096))
    ranked = count + 32 * 7 * 16
    assert (states["adalora"].size.low, states["adalora"].size.bytes) == (8 * ranked, 20 * ranked)
    swift = book(LLAMA_8B, lora__kind="adalora", **LORA, train__framework="swift")
    assert term(swift, "optimizer_step", "moments").size.low == 20 * ranked


@pytest.mark.parametrize(
    ("model", "method", "count"),
    [
        ("meta-llama/Llama-2-7b-hf", "llama_adapter", 1229760),
        ("meta-llama/Llama-2-7b-hf", "llama_adapter_v2", 4279744),
    ],
)
def test_prompts_have_the_parameters_that_litgpt_prints(model: str, method: str, count: int) -> None:
    known = book(LLAMA_8B, model=model, train__framework="litgpt", train__precision="pure_bf16", train__finetuning=method)
    assert term(known, "optimizer_step", "gradients").size.bytes == 2 * count


def test_prompts_keep_their_attention_and_scales_every_output() -> None:
    """Per token: the attention to the prompt in 30 of 32 layers; with scales also the outputs of all linears, of the head among them,
    and the products of the norms, which learn."""
    known = {
        method: book(LLAMA_8B, model="meta-llama/Llama-2-7b-hf", train__framework="litgpt", train__precision="pure_bf16",
                     train__finetuning=method, train__gradient_checkpointing="disabled")
        for method in ("llama_adapter", "llama_adapter_v2")
    }  # fmt: skip
    one, two = (term(each, "loss_call", "layers") for each in known.values())
    tokens, wide, inner = 2 * 2048, 4096, 11008
    assert one.symbols.startswith("L_p*(") and two.symbols.startswith("L*(")
    scaled = 2 * (wide + 2 * wide + 2 * wide + 2 * inner) + 2 * 2 * wide
    assert two.size.bytes // (32 * tokens) - one.size.bytes // (30 * tokens) == scaled
    assert term(known["llama_adapter_v2"], "loss_call", "logits_unscaled").size.bytes == 2 * tokens * 32000


def test_new_and_active_layers_are_what_learns() -> None:
    """LLaMA Pro adds its layers to the weights and to those that checkpoint; LISA trains two of its own beside embedding and head."""
    each, hidden, vocabulary = 218112000, 4096, 128256
    plain, pro, lisa = (
        book(LLAMA_8B, train__finetuning=word, train__trainable_layers=2, train__load_dtype="bf16", train__precision="pure_bf16")
        for word in ("full", "llama_pro", "lisa")
    )
    assert term(pro, "load", "weights_whole").size.bytes - term(plain, "load", "weights_whole").size.bytes == 2 * 2 * each
    assert term(pro, "loss_call", "checkpoints").symbols.startswith("2*h*L*T")
    assert term(pro, "loss_call", "checkpoints").size.bytes == 2 * hidden * 34 * 2 * 2048
    assert term(pro, "optimizer_step", "gradients").size.bytes == 2 * 2 * each
    assert term(lisa, "optimizer_step", "gradients").size.bytes == 2 * (2 * each + 2 * vocabulary * hidden + hidden)


def test_frozen_layers_are_counted_from_their_number() -> None:
    known = book(LLAMA_8B, train__finetuning="freeze", train__trainable_layers=4)
    assert term(known, "optimizer_step", "gradients").size.bytes == 4 * 4 * 218112000


@pytest.mark.parametrize("method", ["freeze", "lisa"])
def test_no_more_layers_learn_than_there_are(method: str) -> None:
    every, more = (book(LLAMA_8B, train__finetuning=method, train__trainable_layers=count) for count in (32, 1000))
    assert term(more, "optimizer_step", "gradients").size == term(every, "optimizer_step", "gradients").size


def test_a_model_with_fewer_layers_than_prompts_leave_out_keeps_none() -> None:
    """LLaMA-Adapter's prompts begin at the third layer."""
    small = model_of_config(
        {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_attention_heads": 4,
            "num_hidden_layers": 1,
            "vocab_size": 1000,
        }
    )
    known = book(LLAMA_8B, train__finetuning="llama_adapter", train__gradient_checkpointing="disabled").changed({"model.shape": small})
    terms = [each for moment in ledgers(known)[0].moments for each in moment.terms]
    assert all(0 <= each.size.low <= each.size.bytes <= each.size.high for each in terms)
    assert not any(each.size.high for each in terms if each.group in ("gradients", "optimizer_states"))
