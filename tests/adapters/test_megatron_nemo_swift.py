"""ms-swift, Megatron-SWIFT, Megatron-LM and NeMo: what their tables say that no other table does."""

from __future__ import annotations

import pytest
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from settings_read import origins, place, read, value

from diagnose.adapters.formats.config_value import Leaf
from diagnose.adapters.schema.framework_tables import table
from diagnose.adapters.translate.config_part import Part
from diagnose.adapters.translate.model_dimensions import built_model
from diagnose.facts import FactBook
from diagnose.plan.edits import knob_edits
from diagnose.plan.patch import patching

LLAMA = "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 11008 --num-attention-heads 32 --swiglu --normalization RMSNorm \
--disable-bias-linear --untie-embeddings-and-output-weights --max-position-embeddings 4096 --seq-length 4096 --micro-batch-size 1"
SWIFT = "NPROC_PER_NODE=2 swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type full"


def run(options: str, tool: str = "torchrun --nproc_per_node 8 pretrain_gpt.py") -> str:
    return f"{tool} {options}\n"


@pytest.mark.parametrize(
    ("tool", "world"),
    [
        ("python -m torch.distributed.launch $DISTRIBUTED_ARGS pretrain_gpt.py", None),
        ("torchrun --nnodes 2 --nproc_per_node 4 ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py", 8),
        ("torchrun pretrain_gpt.py", 1),
    ],
)
def test_options_in_a_variable_are_of_the_launcher(tool: str, world: int | None) -> None:
    """Nobody says what it holds: the program comes after it, and how many processes there are is unknown."""
    told = read({"a.sh": run(LLAMA, tool)})
    assert value(told, "train.framework") == "megatron"
    assert value(told, "parallel.world") == world


@pytest.mark.parametrize("more", ["--model-parallel-size 8", "--deepspeed --deepspeed_config ds.json"])
def test_early_releases_and_megatron_deepspeed_lack_late_options(more: str) -> None:
    told = read({"a.sh": run(f"{LLAMA} --bf16 {more}")})
    for turned in ({"train.activation_offload": True}, {"zero.offload_optimizer": "cpu"}, {"zero.stage": 1}):
        assert not knob_edits.edits([one for one in told.documents if one.name == "a.sh"], FactBook(told.facts), turned)


# -- the model from its dimensions


@for_each(
    "more, params",
    [
        ("--vocab-size 32000", 6738415616),
        ("--vocab-size 32001", 6738415616 + 2 * 128 * 4096),  # padded to a multiple of 128
        ("--vocab-size 32001 --tensor-model-parallel-size 8", 6738415616 + 2 * 768 * 4096),  # on every rank
        ("--tokenizer-type HuggingFaceTokenizer --tokenizer-model meta-llama/Llama-2-7b-hf", 6738415616),
        ("--tokenizer-type GPTSentencePieceTokenizer", None),  # nobody says how large its vocabulary is
        ("--vocab-size 99999999999999999999", None),
    ],
)
def test_the_options_say_which_model_it_is(more: str, params: int | None) -> None:
    told = read({"a.sh": run(f"{LLAMA} {more}")})
    shape = FactBook(told.facts).shape("model.shape")
    assert (shape.params if shape else None) == params
    if params:
        assert place(told, "model.shape")[2] == "--hidden-size"


def test_a_model_without_options_of_its_own_is_megatrons_gpt() -> None:
    """LayerNorm, biases, a plain MLP of four times the width, one table of embeddings."""
    told = read({"a.sh": run("--num-layers 12 --hidden-size 768 --num-attention-heads 12 --vocab-size 50257 --micro-batch-size 4")})
    shape = FactBook(told.facts).shape("model.shape")
    assert shape is not None
    assert (shape.f, shape.V, shape.kv, shape.tied, shape.gated, shape.norm_kind) == (3072, 50304, 12, True, False, "layernorm")
    assert shape.qkv_bias and shape.o_bias and shape.mlp_bias


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(table("megatron").known)), st.text(max_size=12) | st.sampled_from(["0", "1", "-3", "7", "9" * 40]))
    )
)
def test_dimensions_of_any_kind_do_no_harm(pairs: list[tuple[str, str]]) -> None:
    leaves = tuple(Leaf(key, text, text, 0, 0, 1, 1) for key, text in [("hidden_size", "64"), ("num_layers", "2"), *pairs])
    fact = built_model(Part("a.sh", table("megatron"), "shell", "", leaves))
    assert fact is None or fact.name == "model.shape"


# -- one batch, told by its rows


@for_each(
    "more, steps",
    [
        ("", 1),
        ("--global-batch-size 64", 8),
        ("--global-batch-size 64 --tensor-model-parallel-size 4", 32),
        ("--global-batch-size 64 --pipeline-model-parallel-size 2 --context-parallel-size 2", 32),
        ("--global-batch-size 64 --expert-model-parallel-size 8", 8),  # experts are spread over the data-parallel ranks
        ("--rampup-batch-size 8 8 100", None),
    ],
)
def test_what_the_ranks_do_not_hold_is_accumulated(more: str, steps: int | None) -> None:
    assert value(read({"a.sh": run(f"{LLAMA} {more}")}), "train.gradient_accumulation") == steps


@pytest.mark.parametrize(("more", "key"), [("", "--global-batch-size 16"), ("--global-batch-size 16", "--global-batch-size 16")])
def test_a_smaller_micro_batch_leaves_the_rows_of_a_step(more: str, key: str) -> None:
    text = run(f"{LLAMA} --bf16 {more}").replace("--micro-batch-size 1", "--micro-batch-size 2")
    told = read({"a.sh": text})
    edits = knob_edits.edits(told.documents, FactBook(told.facts), {"train.micro_batch_size": 1, "train.gradient_accumulation": 2})
    assert edits is not None
    new = patching.texts(told.documents, edits)["a.sh"]
    assert "--micro-batch-size 1" in new and new.count("--global-batch-size") == 1 and key in new


def test_a_flag_that_another_needs_is_written_as_a_flag() -> None:
    told = read({"a.sh": run(f"{LLAMA} --bf16")})
    edits = knob_edits.edits(told.documents, FactBook(told.facts), {"zero.offload_optimizer": "cpu"})
    assert edits is not None
    assert patching.texts(told.documents, edits)["a.sh"].rstrip().endswith("--optimizer-cpu-offload --use-precision-aware-optimizer")


@for_each(
    "more, word",
    [
        ("", "disabled"),
        ("--recompute-activations", "selective"),
        ("--recompute-granularity selective", "selective"),
        ("--recompute-granularity full --recompute-method uniform --recompute-num-layers 1", "enabled"),
        ("--recompute-granularity full --recompute-method block --recompute-num-layers 4", None),  # some layers of a stage
    ],
)
def test_recomputation(more: str, word: str | None) -> None:
    assert value(read({"a.sh": run(f"{LLAMA} {more}")}), "train.gradient_checkpointing") == word


@for_each(
    "more, stage, sharding",
    [
        ("--bf16", 0, "none"),
        ("--bf16 --use-distributed-optimizer", 1, "none"),
        ("--bf16 --use-megatron-fsdp --use-distributed-optimizer", 0, "full_shard"),
        ("--bf16 --use-megatron-fsdp --data-parallel-sharding-strategy optim_grads", 0, "shard_grad_op"),
        ("--bf16 --use-megatron-fsdp --data-parallel-sharding-strategy optim", 1, "none"),
        ("--bf16 --use-torch-fsdp2", 0, "full_shard"),
    ],
)
def test_what_is_sharded(more: str, stage: int, sharding: str) -> None:
    told = read({"a.sh": run(f"{LLAMA} {more}")})
    assert (value(told, "zero.stage"), value(told, "fsdp.sharding")) == (stage, sharding)


# -- ms-swift


@for_each(
    "command, known, steps",
    [
        (SWIFT, {}, 8),
        (f"{SWIFT} --per_device_train_batch_size 3", {}, 3),
        (f"{SWIFT} --per_device_train_batch_size 32", {}, 1),
        (f"{SWIFT} --rlhf_type grpo", {"swift": "3.8.0"}, 1),
        (SWIFT.replace("NPROC_PER_NODE=2 ", ""), {}, 16),
    ],
)
def test_swift_fills_sixteen_rows(command: str, known: dict[str, str], steps: int) -> None:
    told = read({"a.sh": command + "\n"}, known)
    assert (value(told, "train.gradient_accumulation"), origins(told, "train.gradient_accumulation")) == (steps, ["default"])


def test_the_words_for_deepspeed_files_say_what_is_in_them() -> None:
    told = read({"a.sh": f"{SWIFT} --deepspeed zero3_offload\n"})
    assert (value(told, "zero.stage"), origins(told, "zero.stage")[0]) == (3, "config")
    assert (value(told, "zero.offload_optimizer"), value(told, "zero.offload_param")) == ("cpu", "cpu")
    assert not [notice for notice in told.notices if notice.code == "config.not_given"]


@for_each(
    "given_, change, wanted",
    [
        ("zero2", {"zero.stage": 3}, "zero3"),
        ("zero2", {"zero.offload_optimizer": "cpu"}, "zero2_offload"),
        ("zero2_offload", {"zero.stage": 3}, "zero3_offload"),
        ("zero3", {"zero.offload_optimizer": "cpu"}, "zero3_offload"),
    ],
)
def test_another_word_is_another_file(given_: str, change: dict[str, int | str], wanted: str) -> None:
    told = read({"a.sh": f"{SWIFT} --deepspeed {given_} # kept\n"})
    edits = knob_edits.edits(told.documents, FactBook(told.facts), dict(change))
    assert edits is not None
    assert patching.texts(told.documents, edits)["a.sh"] == f"{SWIFT} --deepspeed {wanted} # kept\n"


@for_each(
    "more, word",
    [
        ("--quant_bits 4", "none"),
        ("--quant_bits 4 --quant_method bnb", "nf4_double"),
        ("--quant_bits 4 --quant_method bnb --bnb_4bit_use_double_quant false", "nf4"),
        ("--quant_bits 4 --quant_method bnb --bnb_4bit_quant_type fp4", "fp4"),
        ("--quant_bits 8 --quant_method bnb", "int8"),
        ("--quant_bits 4 --quant_method hqq", "other"),
        ("--quant_method fp8", "fp8"),
    ],
)
def test_bits_count_with_a_method(more: str, word: str) -> None:
    told = read({"a.sh": f"{SWIFT} {more}\n"})
    assert value(told, "model.quantization") == word
    assert (value(told, "config.ignored_key") == "--quant_bits") == ("bnb" not in more and "method" not in more)


def test_the_variables_of_templates_are_swifts_alone() -> None:
    """MAX_PIXELS beside another trainer is a variable that nobody reads."""
    assert value(read({"a.sh": f"MAX_PIXELS=602112 {SWIFT}\n"}), "data.image_pixels") == 602112
    other = read({"a.sh": "MAX_PIXELS=602112 llamafactory-cli train --stage sft --model_name_or_path a/b\n"})
    assert value(other, "data.image_pixels") != 602112


def test_variables_in_a_file_of_swifts_count_as_such() -> None:
    told = read({"c.yaml": "model: a/b\ntuner_type: lora\nENV:\n  NPROC_PER_NODE: 4\n  MAX_PIXELS: 602112\n"})
    assert (value(told, "parallel.world"), value(told, "data.image_pixels")) == (4, 602112)


@for_each(
    "command, framework",
    [
        ("megatron sft --model a/b --micro_batch_size 1", "swift_megatron"),
        ("swift sft --model a/b --tuner_type lora", "swift"),
        ("torchrun pretrain_gpt.py --tensor-model-parallel-size 1 --micro-batch-size 1", "megatron"),
        ("python megatron_gpt_pretraining.py model.micro_batch_size=1", "nemo"),
        ("nemo llm pretrain --factory llama3_8b trainer.devices=8", "nemo"),
    ],
)
def test_the_three_megatrons_are_told_apart(command: str, framework: str) -> None:
    assert value(read({"a.sh": command + "\n"}), "train.framework") == framework


# -- NeMo


def test_nemo_follows_what_refers_to_other_keys() -> None:
    told = read(
        {"c.yaml": "model:\n  micro_batch_size: 1\n  encoder_seq_length: 2048\n  data:\n    seq_length: ${model.encoder_seq_length}\n"}
    )
    assert value(told, "train.max_seq_len") == 2048


@pytest.mark.parametrize(("flag", "dtype"), [("True", "bf16"), ("False", "fp32")])
def test_o2_decides_how_the_weights_are_held(flag: str, dtype: str) -> None:
    told = read({"c.yaml": f"trainer:\n  precision: bf16\nmodel:\n  micro_batch_size: 1\n  megatron_amp_O2: {flag}\n"})
    assert value(told, "train.load_dtype") == dtype


@for_each(
    "line, framework",
    [
        ("tuner_type: lora", "swift"),
        ("sleep_level: 1", "swift"),
        ("seq_length: 4096", "megatron"),
        ("mcore_model: a", "swift_megatron"),
    ],
)
def test_one_key_that_two_dialects_share_is_the_older_ones(line: str, framework: str) -> None:
    assert value(read({"c.yaml": f"{line}\n"}), "train.framework") == framework


# -- before release 3, and Megatron-DeepSpeed

OLD = """deepspeed --num_gpus 8 pretrain_gpt2.py \\
  --num-layers 24 --model-parallel-size 2 --deepspeed --deepspeed_config d.json \\
  --batch-size 4"""


def test_the_options_of_megatron_deepspeed_are_megatrons() -> None:
    """What the file of --deepspeed_config says is unknown where it was not given: no default of Megatron's stands for it."""
    told = read({"run.sh": f"{OLD} --checkpoint-activations\n"})
    known = ["train.framework", "train.micro_batch_size", "parallel.tensor", "train.gradient_checkpointing"]
    assert [value(told, name) for name in known] == ["megatron", 4, 2, "enabled"]
    assert [value(told, name) for name in ("zero.stage", "zero.offload_optimizer", "train.gradient_accumulation")] == [None] * 3
    beside = read({"run.sh": f"{OLD}\n", "d.json": '{"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 2}}'})
    assert [value(beside, name) for name in ("zero.stage", "train.gradient_checkpointing")] == [2, "disabled"]


@for_each(
    "options, found",
    [
        ("--checkpoint-activations --checkpoint-num-layers 1", "enabled"),
        ("--checkpoint-activations --checkpoint-num-layers 2", None),
        ("--activations-checkpoint-method uniform", "enabled"),
        ("--activations-checkpoint-method uniform --activations-checkpoint-num-layers 4", None),
        ("--activations-checkpoint-method block", None),
    ],
)
def test_recomputation_as_older_releases_spell_it(options: str, found: str | None) -> None:
    """Chunks of several layers keep what none of the knob's words says."""
    told = read({"run.sh": f"torchrun pretrain_gpt.py --num-layers 24 --micro-batch-size 4 {options}\n"})
    assert value(told, "train.gradient_checkpointing") == found


@pytest.mark.parametrize(
    ("knob", "value", "line"),
    [
        ("train.gradient_checkpointing", "enabled", "--batch-size 4 \\\n  --checkpoint-activations"),
        ("train.micro_batch_size", 1, "--batch-size 1"),
    ],
)
def test_an_edit_is_in_the_words_of_that_release(knob: str, value: int | str, line: str) -> None:
    """Its options, with the dashes that its parser wants although the launcher's has an underscore."""
    told = read({"run.sh": f"{OLD}\n"})
    made = knob_edits.edits(told.documents, FactBook(told.facts), {knob: value})
    assert made and line in patching.texts(told.documents, made)["run.sh"]
