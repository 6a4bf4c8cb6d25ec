"""What is called exact: sizes that are dealt to jobs they do not belong to hardly ever, and never against the phase."""

from __future__ import annotations

from typing import Any

from books import book, event
from chance import deal
from collected import for_each

from diagnose.budget.attribution.request_tensor import attribute
from diagnose.budget.model.ledger import Attribution
from diagnose.budget.moments.role_ledgers import ledgers

LLAMA = {"train.stage": "sft", "train.finetuning": "full", "train.precision": "bf16", "train.micro_batch_size": 1, "parallel.world": 1}
LOADING = "transformers/modeling_utils.py:_load_state_dict_into_meta_model|param = param[...].to(device)"


def best(facts: dict[str, Any], *failure: str) -> Attribution | None:
    known = book(LLAMA | facts)
    return next(iter(attribute(known, ledgers(known), event(*failure), 0)), None)


def test_dealt_sizes_are_hardly_ever_exact() -> None:
    """Two in a hundred, and two standard deviations of a thousand draws. `python benchmarks/chance.py` deals ten times as many."""
    claims, milliseconds = deal(1000, 7)
    assert claims["exact"] <= 20 + 9
    assert milliseconds[500] < 5


@for_each(
    "model, size, phase, exact",
    [
        ("Qwen/Qwen2.5-7B", "1.02 GiB", "model_load", True),  # 152064 x 3584 x 2
        ("meta-llama/Llama-2-13b-hf", "270.00 MiB", "model_load", True),  # 5120 x 13824 x 4
        ("Qwen/Qwen2.5-7B", "14.19 GiB", "model_load", True),  # all weights in 16 bits
        ("meta-llama/Llama-3.1-8B", "112.00 MiB", "model_load", False),  # a matrix, but round
        ("meta-llama/Llama-3.1-8B", "2.00 GiB", "forward", False),
        ("Qwen/Qwen2.5-7B", "1.02 GiB", "loss", False),  # weights are not made there
    ],
)
def test_an_identity_needs_an_uncommon_figure_in_its_phase(model: str, size: str, phase: str, exact: bool) -> None:
    made = best({"model": model, "train.max_seq_len": 512}, size, phase)
    assert (made is not None and made.exact and made.group == "weights") is exact


def test_a_length_that_is_solved_for_is_never_exact() -> None:
    """Some number of tokens fits every size: a frame that shows the logits names them, nothing else does."""
    silent = best({"model": "Qwen/Qwen2.5-7B"}, "61.34 GiB", "loss")
    shown = best({"model": "Qwen/Qwen2.5-7B"}, "61.34 GiB", "loss", "torch/nn/functional.py:cross_entropy|return torch._C._nn.cross")
    assert silent is None or (not silent.exact and not silent.named)
    assert shown is not None
    assert (shown.group, shown.exact, shown.named) == ("logits", False, True)


def test_a_round_matrix_is_named_by_its_frame() -> None:
    """112.00 MiB proves nothing by itself; while weights are moved to the card it is the matrix."""
    made = best({"model": "meta-llama/Llama-3.1-8B"}, "112.00 MiB", "model_load", LOADING)
    assert made is not None
    assert (made.key, made.exact, made.named) == ("ledger.t_weight", False, True)


def test_an_unknown_model_is_tried_as_its_kin() -> None:
    """CodeLlama-13b has the dimensions of Llama-2-13b: 5120 x 13824 x 2 is 135 MiB, printed as 136."""
    made = best({"model.path": "CodeLlama-13b-Python-hf"}, "136.00 MiB", "model_load")
    assert made is not None
    assert made.bytes == 5120 * 13824 * 2
    assert best({"model.path": "acme/secret-model"}, "136.00 MiB", "model_load") is None


def test_an_added_token_makes_the_head_one_row_longer() -> None:
    """500 MiB of a head in fp32 and one padding token print as 502."""
    made = best({"model": "meta-llama/Llama-2-7b-hf"}, "502.00 MiB", "checkpoint_save")
    assert made is not None
    assert (made.bytes, made.exact) == (32001 * 4096 * 4, True)


def test_images_of_the_largest_size_are_counted() -> None:
    """Ten images of 1,792 patches attend to each other in the tower of 16 heads: 16 x 17,920^2 x 4."""
    facts = {"model": "Qwen/Qwen2.5-VL-3B-Instruct", "data.image_pixels": 351232, "train.max_seq_len": 4096}
    made = best(facts, "19.14 GiB", "unknown")
    assert made is not None
    assert made.bytes == 16 * 17920 * 17920 * 4


@for_each(
    "size, phase, frame, more, knobs",
    [
        (
            "4.64 GiB",
            "loss",
            "torch/nn/functional.py:cross_entropy|x",
            {},
            {"train.max_seq_len": 1, "train.micro_batch_size": 1, "parallel.context": -1},
        ),
        (
            "1.75 GiB",
            "attention",
            "modeling_qwen2.py:f|attn = softmax(",
            {},
            {"train.max_seq_len": 2, "train.micro_batch_size": 1, "parallel.context": -1},
        ),
        ("1.77 GiB", "optimizer_step", "torch/optim/adam.py:_init_group|torch.zeros_like(", {"parallel.world": 16}, {"parallel.world": -1}),
        ("1.02 GiB", "model_load", LOADING, {}, {}),
    ],
)
def test_what_lowers_a_tensor_follows_from_its_formula(
    size: str, phase: str, frame: str, more: dict[str, Any], knobs: dict[str, float]
) -> None:
    run = {"model": "Qwen/Qwen2.5-7B", "train.max_seq_len": 4096, "train.micro_batch_size": 2, "zero.stage": 3, "model.attention": "eager"}
    if phase == "attention":
        run |= {"train.micro_batch_size": 1}
    made = best(run | more, size, phase, frame)
    assert made is not None
    assert made.lowered_by == knobs, made.key


@for_each(
    "facts, size, frame, bytes_",
    [
        # the widest feature maps of a ConvNeXt of 128 images; SD 2.1 at 768 pixels, five heads of three images with guidance
        (
            {"data.image_size": 224, "train.micro_batch_size": 128},
            "196.00 MiB",
            "torch/nn/modules/conv.py:_conv_forward|F.conv2d(",
            205520896,
        ),
        (
            {"data.image_size": 768},
            "9.49 GiB",
            "ldm/modules/attention.py:forward|sim = einsum('b i d, b j d -> b i j', q, k)",
            96**4 * 30 * 4,
        ),
        # a decoder that looks at all 512 x 640 positions at once
        ({}, "400.00 GiB", "ldm/modules/diffusionmodules/model.py:forward|w_ = torch.bmm(q,k)", (512 * 640) ** 2 * 4),
    ],
)
def test_networks_of_images(facts: dict[str, Any], size: str, frame: str, bytes_: int) -> None:
    made = best(facts, size, "forward", frame)
    assert made is not None
    assert (made.bytes, made.named) == (bytes_, True)


def test_gradients_of_a_model_in_one_unit() -> None:
    """11,307,321,344 parameters in 16 bits are one tensor of 21.06 GiB where no policy wraps the layers."""
    made = best({"model": "google-t5/t5-11b"}, "21.06 GiB", "backward", "torch/autograd/__init__.py:backward|run_backward(")
    assert made is not None
    assert (made.key, made.exact) == ("ledger.t_gradient_flat", True)


def test_nothing_is_claimed_for_an_image_network_by_a_round_size() -> None:
    """Any power of two is some channels times some rows."""
    made = best({"data.image_size": 224, "train.micro_batch_size": 128}, "512.00 MiB", "forward")
    assert made is None or not (made.exact or made.named)


@for_each(
    "size, phase, frame, key, numbers",
    [
        (
            "4.00 GiB",
            "forward",
            "my/model.py:forward|attention_mask = torch.full((n, n), float('-inf'))",
            "t_mask_square",
            "4*32768*32768",
        ),  # or a byte each of 65,536, whose root is as round
        ("16.00 GiB", "init", "modeling_llama.py:__init__|causal_mask = torch.full((m, m), True)", "t_mask_context", "131072*131072"),
        ("16.00 GiB", "generation", "transformers/cache_utils.py:__init__|torch.zeros(cache_shape)", "t_kv_context", "2*2*32*1024*131072"),
    ],
)
def test_tensors_of_whole_contexts(size: str, phase: str, frame: str, key: str, numbers: str) -> None:
    """One mask is not the scores of every head, and what is built for the longest context does not follow the rows."""
    known = book({"model": "meta-llama/Llama-3.1-8B"})
    made = attribute(known, ledgers(known), event(size, phase, frame), 0)[0]
    assert (made.key, made.numbers, made.named) == (f"ledger.{key}", numbers, True)


def test_a_mask_that_is_handed_on_has_no_length_of_its_own() -> None:
    """The statement names the mask, the tensor is of the vision tower."""
    frame = "transformers/models/qwen2_vl/modeling_qwen2_vl.py:forward|F.scaled_dot_product_attention(q, k, v, attention_mask)"
    made = best({"model": "Qwen/Qwen2-VL-7B-Instruct", "train.max_seq_len": 2048}, "19.53 GiB", "attention", frame)
    assert made is not None
    assert made.group == "mm_inputs"
