"""What configs and echoed commands say in neutral knobs, with the key that says it; defaults of releases; keys that are not read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from collected import for_each
from settings_read import origins, place, read, value

from diagnose.adapters import config_reader
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.facts import FactBook, Value
from diagnose.parse.model.reading import Reading

AXOLOTL = "base_model: meta-llama/Llama-3.2-3B-Instruct\ndatasets:\n  - path: d\nmicro_batch_size: 1\n"


# -- keys that are not read


def test_a_misspelt_key_is_named_with_the_real_one_and_the_default_holds() -> None:
    told = read({"c.yaml": AXOLOTL + "sequence_length: 2048\n"}, {"axolotl": "0.6.0"})
    assert value(told, "config.unknown_key") == "sequence_length"
    assert value(told, "config.wanted_knob") == "train.max_seq_len"
    assert place(told, "config.unknown_key") == ("c.yaml", 5, "sequence_length")
    assert (value(told, "train.max_seq_len"), origins(told, "train.max_seq_len")) == (512, ["default"])
    (notice,) = told.notices
    assert "sequence_len" in notice.message.en and "sequence_len" in notice.message.zh


def test_a_key_of_another_framework_is_named_by_this_ones() -> None:
    told = read({"c.yaml": AXOLOTL + "cutoff_len: 2048\n"})
    assert value(told, "config.wanted_knob") == "train.max_seq_len"
    assert "sequence_len" in told.notices[0].message.en


def test_a_key_that_its_release_does_not_read_yet_is_not_in_effect() -> None:
    early = read({"c.yaml": AXOLOTL + "chunked_cross_entropy: true\n"}, {"axolotl": "0.10.0"})
    there = read({"c.yaml": AXOLOTL + "chunked_cross_entropy: true\n"}, {"axolotl": "0.13.0"})
    assert (value(early, "config.unknown_key"), value(early, "train.loss_kernel")) == ("chunked_cross_entropy", "none")
    assert (value(there, "config.unknown_key"), value(there, "train.loss_kernel")) == (None, "chunked")


def test_an_old_name_that_is_handed_on_still_counts() -> None:
    """Axolotl warns of sequence_parallel_degree and gives its value to context_parallel_size."""
    for release in ("0.10.0", "0.13.0"):
        told = read({"c.yaml": AXOLOTL + "sequence_parallel_degree: 4\n"}, {"axolotl": release})
        assert (value(told, "config.unknown_key"), value(told, "parallel.context")) == (None, 4)


def test_real_keys_of_any_kind_are_not_reported() -> None:
    text = AXOLOTL + "special_tokens:\n  pad_token: x\nlora_alpha: 16\nwandb_project: p\nwarmup_steps: 10\nlora_r: 8\nadapter: lora\n"
    assert not read({"c.yaml": text}).notices


def test_a_framework_that_rejects_unknown_keys_ran_with_what_it_accepted() -> None:
    """The key is reported, but a run that got as far as memory proves that its release knew it."""
    told = read({"c.yaml": "stage: sft\nfinetuning_type: lora\ncutoff_length: 4\n"})
    assert [notice.code for notice in told.notices] == ["config.unknown_key"]
    assert "cutoff_len" in told.notices[0].message.en
    assert value(told, "config.unknown_key") is None


def test_a_key_without_effect_here_is_said_to_have_none() -> None:
    told = read({"c.yaml": AXOLOTL + "activation_offloading: true\n"}, {"axolotl": "0.13.0"})
    assert value(told, "config.ignored_key") == "activation_offloading"


def test_options_behind_a_comment_never_reached_the_program() -> None:
    told = read({"run.sh": "llamafactory-cli train \\\n  --stage sft \\\n  --finetuning_type lora \\\n  # --bf16 \\\n  --cutoff_len 512\n"})
    assert value(told, "config.ignored_key") == "--cutoff_len"
    assert value(told, "train.max_seq_len") is None
    assert [notice.code for notice in told.notices] == ["config.cut_off"]


# -- who wins


def test_the_command_line_wins_over_the_file_and_the_trainer_over_deepspeed() -> None:
    files = {
        "run.sh": "llamafactory-cli train c.yaml cutoff_len=512\n",
        "c.yaml": "stage: sft\nfinetuning_type: full\ncutoff_len: 4096\nbf16: true\ndeepspeed: d.json\nper_device_train_batch_size: 2\n",
        "d.json": '{"fp16": {"enabled": true}, "train_micro_batch_size_per_gpu": 8, "zero_optimization": {"stage": 2}}',
    }
    told = read(files)
    assert (value(told, "train.max_seq_len"), value(told, "train.precision"), value(told, "train.micro_batch_size")) == (512, "bf16", 2)
    assert value(told, "zero.stage") == 2


def test_an_echoed_command_is_the_logs_word() -> None:
    told = read({}, commands=["NPROC_PER_NODE=8 llamafactory-cli train x.yaml"])
    assert (value(told, "parallel.world"), place(told, "parallel.world")[:2]) == (8, ("error.log", 7))
    assert value(told, "train.framework") == "llamafactory"


def test_defaults_are_not_claimed_for_a_file_that_nobody_gave() -> None:
    assert value(read({}, commands=["llamafactory-cli train x.yaml"]), "train.gradient_checkpointing") is None


def test_log_and_file_disagreeing_is_a_finding() -> None:
    told = read(
        {"c.yaml": "stage: sft\nfinetuning_type: full\ngradient_accumulation_steps: 8\nbf16: true\n"},
        known={"train.gradient_accumulation": "4", "train.compute_dtype": "fp16"},
    )
    assert {fact.value for fact in told.facts if fact.name == "config.disagreement"} == {"train.gradient_accumulation", "train.precision"}


# -- values


def test_numbers_survive_every_notation() -> None:
    told = read(
        {
            "d.json": '{"zero_optimization": {"stage": 3, "reduce_bucket_size": 5e8, "sub_group_size": 1e9,'
            ' "stage3_max_live_parameters": 1000000000.0}}'
        }
    )
    assert [value(told, f"zero.{name}") for name in ("reduce_bucket", "sub_group", "max_live_parameters")] == [500_000_000, 10**9, 10**9]


def test_a_value_of_the_wrong_kind_is_a_notice_not_a_default() -> None:
    told = read({"c.yaml": AXOLOTL + "sequence_len: long\n"})
    assert [notice.code for notice in told.notices] == ["config.wrong_value"]
    assert value(told, "train.max_seq_len") is None


def test_auto_is_what_hugging_face_writes_from_the_hidden_size() -> None:
    told = read(
        {
            "c.yaml": AXOLOTL + "deepspeed: d.json\n",
            "d.json": '{"zero_optimization": {"stage": 3, "reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto",'
            ' "stage3_param_persistence_threshold": "auto"}}',
        }
    )
    h = 3072
    assert [value(told, f"zero.{name}") for name in ("reduce_bucket", "prefetch_bucket", "persistence_threshold")] == [
        h * h,
        int(0.9 * h * h),
        10 * h,
    ]


def test_a_block_without_a_key_says_that_the_key_has_its_default() -> None:
    told = read({"d.json": '{"train_batch_size": 8,\n "zero_optimization": {"stage": 3}}'})
    assert (value(told, "zero.offload_optimizer"), place(told, "zero.offload_optimizer")[1]) == ("none", 2)


def test_a_file_that_the_framework_ships_is_known_without_being_given() -> None:
    told = read({"c.yaml": "stage: sft\nfinetuning_type: full\ndeepspeed: examples/deepspeed/ds_z3_offload_config.json\n"})
    assert (value(told, "zero.stage"), value(told, "zero.offload_param"), origins(told, "zero.stage")) == (3, "cpu", ["default"])


def test_an_unknown_deepspeed_file_leaves_the_stage_unknown() -> None:
    told = read({"c.yaml": "stage: sft\nfinetuning_type: full\ndeepspeed: mine.json\n"})
    assert value(told, "zero.stage") is None
    assert [notice.code for notice in told.notices] == ["config.not_given"]


def test_a_named_file_is_read_from_the_folder_and_never_from_outside(tmp_path: Path) -> None:
    inside = tmp_path / "job"
    inside.mkdir()
    (inside / "d.json").write_text('{"zero_optimization": {"stage": 2}}')
    (tmp_path / "secret.json").write_text('{"zero_optimization": {"stage": 3}}')
    near = read({"c.yaml": AXOLOTL + "deepspeed: d.json\n"}, folder=inside)
    far = read({"c.yaml": AXOLOTL + "deepspeed: ../secret.json\n"}, folder=inside)
    pasted = read({"c.yaml": AXOLOTL + "deepspeed: d.json\n"})
    assert (value(near, "zero.stage"), value(far, "zero.stage"), value(pasted, "zero.stage")) == (2, None, None)


# -- defaults by release


@for_each(
    "text, versions, name, expected",
    [
        ("stage: sft\nfinetuning_type: full\n", {}, "train.gradient_checkpointing", "enabled"),
        ("stage: sft\nfinetuning_type: full\n", {}, "train.precision", "fp32"),
        ("stage: dpo\nfinetuning_type: full\n", {}, "train.ref_model", "copy"),
        ("stage: dpo\nfinetuning_type: lora\n", {}, "train.ref_model", "adapter"),
        ("stage: sft\ntemplate: x\n", {}, "train.finetuning", "lora"),
        ("stage: sft\ntemplate: x\n", {"llamafactory": "0.8.0"}, "train.max_seq_len", 1024),
        ("stage: sft\ntemplate: x\n", {"llamafactory": "0.9.3"}, "train.max_seq_len", 2048),
        ("stage: sft\ntemplate: x\n", {}, "train.max_seq_len", None),
        (AXOLOTL, {}, "train.gradient_checkpointing", "disabled"),
        (AXOLOTL, {"axolotl": "0.6.0", "torch": "2.5.1"}, "alloc.expandable_segments", True),
        (AXOLOTL, {"axolotl": "0.4.0", "torch": "2.5.1"}, "alloc.expandable_segments", False),
        (AXOLOTL, {"axolotl": "0.6.0", "torch": "2.1.0"}, "alloc.expandable_segments", None),
        (AXOLOTL, {}, "model.attention", "sdpa"),
        (AXOLOTL.replace("meta-llama/Llama-3.2-3B-Instruct", "deepseek-ai/DeepSeek-V2-Lite"), {}, "model.attention", "eager"),
        ("from trl import GRPOConfig\na = GRPOConfig(output_dir='o')\n", {"trl": "0.17.0"}, "train.gradient_checkpointing", "disabled"),
        ("from trl import GRPOConfig\na = GRPOConfig(output_dir='o')\n", {"trl": "0.22.0"}, "train.gradient_checkpointing", "enabled"),
        ("from trl import GRPOConfig\na = GRPOConfig(output_dir='o')\n", {}, "train.gradient_checkpointing", None),
        ("from trl import GRPOConfig\na = GRPOConfig(output_dir='o')\n", {"trl": "0.17.0"}, "grpo.beta", 0.04),
        ("from transformers import TrainingArguments\na = TrainingArguments('o')\n", {}, "train.micro_batch_size", 8),
        (
            "deepspeed --module openrlhf.cli.train_dpo --pretrain a/b --zero_stage 3\n",
            {"openrlhf": "0.3.8"},
            "zero.grad_accum_dtype",
            "fp32",
        ),
        ("deepspeed --module openrlhf.cli.train_dpo --pretrain a/b --bf16\n", {"openrlhf": "0.6.0"}, "zero.grad_accum_dtype", "bf16"),
        ("deepspeed --module openrlhf.cli.train_dpo --pretrain a/b --bf16\n", {}, "zero.grad_accum_dtype", None),
        ("deepspeed --module openrlhf.cli.train_dpo --model.model_name_or_path a/b\n", {}, "model.attention", "flash_attention_2"),
    ],
)
def test_defaults_are_those_of_the_release_and_unknown_where_releases_differ(
    text: str, versions: Mapping[str, str], name: str, expected: Value
) -> None:
    told = read({"c": text}, versions)
    assert value(told, name) == expected
    assert expected is None or origins(told, name) == ["default"]


# -- how the job was started


@for_each(
    "command, world",
    [
        ("torchrun --nproc_per_node 4 --nnodes 2 train.py --per_device_train_batch_size 1", 8),
        ("accelerate launch --num_processes 6 train.py", 6),
        ("deepspeed --include localhost:0,1,3 train.py --per_device_train_batch_size 1", 3),
        ("CUDA_VISIBLE_DEVICES=0,1 llamafactory-cli train c.yaml", 2),
        ("python train.py --per_device_train_batch_size 1", 1),
        ("srun python train.py --per_device_train_batch_size 1", None),
    ],
)
def test_processes_are_counted_where_the_launcher_says_them(command: str, world: int | None) -> None:
    assert value(read({"run.sh": command + "\n"}), "parallel.world") == world


def test_a_server_on_other_cards_is_not_the_trainers() -> None:
    apart = (
        "CUDA_VISIBLE_DEVICES=0,1 trl vllm-serve --model m --tensor_parallel_size 2\nCUDA_VISIBLE_DEVICES=2,3,4 accelerate launch t.py\n"
    )
    told = read({"run.sh": apart})
    assert (value(told, "rollout.placement"), value(told, "run.cuda_devices"), value(told, "rollout.tensor_parallel")) == ("separate", 3, 2)
    assert value(read({"run.sh": apart.replace("2,3,4", "1,2")}), "rollout.placement") == "colocated"


@for_each(
    "command, engine",
    [
        ("vllm serve a/b --max-model-len 512", "vllm"),
        ("python3 -m sglang.launch_server --model-path a/b --tp 2", "sglang"),
        ("lmdeploy serve api_server a/b --tp 2", "lmdeploy"),
        ("docker run --gpus all ghcr.io/huggingface/text-generation-inference:3.0.1 --model-id a/b", "tgi"),
        ("docker run --gpus all vllm/vllm-openai:latest python3 -m sglang.launch_server --model-path a/b", "sglang"),
        ("docker run -v /data/cache:/root/.cache/vllm vllm/vllm-openai:latest --model a/b", "vllm"),
    ],
)
def test_a_server_alone_is_what_failed(command: str, engine: str) -> None:
    told = read({"serve.sh": command + "\n"})
    assert [value(told, name) for name in ("rollout.engine", "model.path", "log.role")] == [engine, "a/b", "engine"]
    beside = read({"serve.sh": command + "\naccelerate launch t.py --per_device_train_batch_size 1\n"})
    assert (value(beside, "rollout.engine"), value(beside, "log.role")) == (engine, None)


def test_roles_of_a_ray_job_have_their_cards() -> None:
    told = read(
        {
            "r.sh": "python -m openrlhf.cli.train_ppo_ray --actor_num_nodes 2 --actor_num_gpus_per_node 4 --critic_num_gpus_per_node 2 "
            "--pretrain a/b --train_batch_size 64 --micro_train_batch_size 4\n"
        }
    )
    assert [value(told, name) for name in ("actor.gpus", "critic.gpus", "actor.model", "train.stage")] == [8, 2, "a/b", "ppo"]
    assert (value(told, "train.gradient_accumulation"), origins(told, "train.gradient_accumulation")) == (2, ["derived"])


@for_each(
    "text, kind",
    [
        ("cutoff_len: 4\n", "llamafactory"),
        ("sequence_len: 4\n", "axolotl"),
        ("zero_optimization:\n  stage: 3\n", "deepspeed"),
        ('{"finetuning_type": "lora"}', "llamafactory"),
        ("distributed_type: FSDP\nmixed_precision: bf16\n", "accelerate"),
        ("model_name_or_path: x\ndataset_name: y\nuse_peft: true\n", "trl"),
        ("args = TrainingArguments(output_dir='o')\n", "transformers"),
        ("actor_rollout_ref:\n  rollout:\n    n: 2\n", "verl"),
        ("python -m verl.trainer.main_ppo data.train_batch_size=8\n", "shell"),
    ],
)
def test_the_kind_is_found_by_what_the_text_says(text: str, kind: str) -> None:
    assert read({"whatever": text}).inputs[0].kind == kind


def test_blocks_of_the_same_names_make_no_file_of_another_framework() -> None:
    """NeMo Automodel, too, has a model and an optimizer with a class for each: that does not give it torchtune's defaults."""
    text = (
        "step_scheduler: {global_batch_size: 64, local_batch_size: 8}\n"
        "model: {_target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained, pretrained_model_name_or_path: google/gemma-2-9b}\n"
        "distributed: {_target_: nemo_automodel.components.distributed.fsdp2.FSDP2Manager, tp_size: 1}\n"
        "optimizer: {_target_: torch.optim.Adam, lr: 1.0e-5}\n"
    )
    told = read({"automodel.yaml": text})
    assert told.inputs[0].kind == "automodel" and value(told, "train.framework") == "automodel"
    assert value(told, "train.optimizer_in_backward") is None


def test_a_forced_kind_is_taken_at_its_word() -> None:
    source = ConfigSource("c", b"max_length: 7\n", forced_kind="trl")
    told = config_reader.read([source], Reading(), FactBook())
    assert (told.inputs[0].kind, value(told, "train.max_seq_len")) == ("trl", 7)


def test_one_unusable_file_does_not_cost_the_others() -> None:
    told = read({"bad.yaml": "a: [1\n", "good.yaml": AXOLOTL})
    assert value(told, "train.framework") == "axolotl"
    assert [(notice.level, notice.witness.source if notice.witness else "") for notice in told.notices] == [("error", "bad.yaml")]


def test_a_models_own_config_names_its_shape() -> None:
    text = (
        '{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 128,'
        ' "num_hidden_layers": 2,'
        ' "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100}'
    )
    told = read({"config.json": text})
    shape = FactBook(told.facts).shape("model.shape")
    assert told.inputs[0].kind == "model"
    assert shape is not None and (shape.h, shape.L, shape.V) == (64, 2, 100)


def test_a_precision_switched_off_is_not_the_default() -> None:
    assert value(read({"c.yaml": AXOLOTL + "bf16: false\nfp16: false\n"}), "train.precision") == "fp32"
    assert value(read({"c.yaml": AXOLOTL + "bf16: false\nfp16: true\n"}), "train.precision") == "fp16"
    assert value(read({"c.yaml": AXOLOTL}), "train.precision") == "bf16"


def test_a_script_with_arguments_of_its_own_has_defaults_of_its_own() -> None:
    """Options that look like transformers' do not make a stranger's program one."""
    own = "python main.py --per_device_train_batch_size 8 --data_split 2,4 --lora_dim 128 --num_padding_at_beginning 1\n"
    told = read({"run.sh": own})
    assert value(told, "train.micro_batch_size") == 8
    assert value(told, "train.precision") is None


# -- programs that train nothing


@for_each("command", ["swift infer --model Qwen/Qwen2.5-7B", "llamafactory-cli chat a.yaml", "python -m lm_eval --model hf", "lm_eval run"])
def test_a_program_that_never_trains_is_known(command: str) -> None:
    assert value(read({}, commands=[command]), "train.enabled") is False


@pytest.mark.parametrize(
    ("command", "merges"), [("swift export --merge_lora true", True), ("swift export --quant_bits 4", None), ("swift infer", None)]
)
def test_a_command_that_merges_adapters_is_known(command: str, merges: bool | None) -> None:
    assert value(read({}, commands=[command]), "run.merges") is merges


def test_what_is_done_after_training_is_not_all_that_is_done() -> None:
    told = read({"run.sh": "swift sft --model Qwen/Qwen2.5-7B --dataset d\nswift export --model Qwen/Qwen2.5-7B --merge_lora true\n"})
    assert value(told, "train.enabled") is not False


def test_a_model_of_sentence_transformers_is_loaded_by_its_name() -> None:
    told = read({"t.py": 'from sentence_transformers import SentenceTransformer\nmodel = SentenceTransformer("BAAI/bge-m3")\n'})
    assert (value(told, "model.path"), value(told, "model.head")) == ("BAAI/bge-m3", "none")


@pytest.mark.parametrize(
    ("options", "method", "quantised"),
    [("", "full", "none"), ("--lora_enable True --lora_r 128 --bits 4", "lora", "nf4_double")],
)
def test_llavas_trainer_trains_all_weights_unless_told_otherwise(options: str, method: str, quantised: str) -> None:
    told = read({"run.sh": f"deepspeed llava/train/train_mem.py --model_name_or_path lmsys/vicuna-7b-v1.5 --output_dir o {options}\n"})
    assert (value(told, "train.finetuning"), value(told, "model.quantization")) == (method, quantised)


def test_internvls_trainer_trains_adapters_of_the_rank_it_is_given() -> None:
    command = (
        "torchrun internvl/train/internvl_chat_finetune.py --model_name_or_path OpenGVLab/InternVL2-4B --output_dir o --use_llm_lora 16"
    )
    told = read({"run.sh": f"{command}\n"})
    assert (value(told, "train.finetuning"), value(told, "lora.rank"), value(told, "train.stage")) == ("lora", 16, "sft")
