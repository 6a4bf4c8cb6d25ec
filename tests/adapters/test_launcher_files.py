"""A command that names its launcher's file, which nobody gave: it may shard the model, and its name often says how."""

from __future__ import annotations

from collected import for_each
from settings_read import read, value

from diagnose import explain

COMMAND = (
    "accelerate launch --config_file {file} src/train.py --stage sft --do_train --model_name_or_path Qwen/Qwen2-7B-Instruct "
    "--finetuning_type full --template qwen --output_dir out --per_device_train_batch_size 1 --cutoff_len 1024 --bf16 True\n"
)
OOM = "torch.cuda.OutOfMemoryError: CUDA out of memory."


@for_each(
    "file, sharding, stage",
    [
        ("examples/accelerate/fsdp_config.yaml", "full_shard", None),
        ("accelerate_configs/deepspeed_zero3.yaml", None, 3),
        ("configs/ds_z2.yaml", None, 2),
        ("accelerate_configs/multi_gpu.yaml", None, None),
    ],
)
def test_the_name_of_the_file_says_how_the_model_is_sharded(file: str, sharding: str | None, stage: int | None) -> None:
    told = read({"run.sh": COMMAND.format(file=file)})
    assert (value(told, "fsdp.sharding"), value(told, "zero.stage")) == (sharding, stage)
    assert value(told, "config.launcher_missing") is True


@for_each(
    "file, stage",
    [("configs/zero2.json", 2), ("stage3.json", 3), ("ds_config.json", None), ("examples/deepspeed/ds_z0_config.json", 0)],
)
def test_the_name_of_deepspeeds_own_file_says_the_stage(file: str, stage: int | None) -> None:
    """What the framework ships under that name needs no guess, and is not missed."""
    command = COMMAND.replace("accelerate launch --config_file {file}", "deepspeed").replace("--bf16", f"--deepspeed {file} --bf16")
    told = read({"run.sh": command})
    assert value(told, "zero.stage") == stage
    assert value(told, "config.engine_file_missing") is (None if stage == 0 else True)


def test_nothing_is_said_to_lie_whole_on_every_card() -> None:
    """What the file decides is unknown, so the states of a 7B model are no reason, and no stage of ZeRO is added to a job of FSDP."""
    for file in ("fsdp_config.yaml", "mine.yaml"):
        found = explain([OOM], configs=[COMMAND.format(file=file)])
        assert not found.judgement.causes
        assert all("zero" not in edit.key for remedy in found.outcome.remedies for edit in remedy.edits)


def test_a_run_that_resumes_says_so() -> None:
    """The checkpoint was made by a run that fitted: what is new is that it is read back."""
    resumed = COMMAND.rstrip("\n") + " --resume_from_checkpoint out/checkpoint-4000\n"
    causes = explain([OOM], configs=[resumed.format(file="fsdp_config.yaml")]).judgement.causes
    assert [cause.rule for cause in causes] == ["fails-when-resumed"]


def test_little_at_another_moment_does_not_lead() -> None:
    """No card is named: what takes 150 MiB off a moment below the peak is no advice that anybody needs first."""
    command = (
        "NPROC_PER_NODE=6 swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-3B-Instruct --use_vllm true --vllm_mode server "
        "--train_type full --torch_dtype bfloat16 --max_length 2048 --max_completion_length 2048 --per_device_train_batch_size 2 "
        "--gradient_accumulation_steps 8 --num_generations 4 --deepspeed zero3\n"
    )
    assert "liger_kernel" not in [remedy.id for remedy in explain([OOM], configs=[command]).outcome.remedies]


def test_another_release_is_a_try_where_none_is_known_to_cure() -> None:
    """ms-swift of an unknown release fails while it hands weights on."""
    frame = 'Traceback (most recent call last):\n  File "/env/swift/rollout_mixin.py", line 655, in _move_model_to_vllm\n    self._move()\n'
    command = "swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-3B-Instruct --use_vllm true --vllm_mode colocate --deepspeed zero3\n"
    offered = explain([frame + OOM], configs=[command]).outcome.remedies
    assert [remedy.title.en for remedy in offered if remedy.id == "upgrade_library"] == ["Try a newer release"]


def test_a_step_after_which_a_checkpoint_is_due() -> None:
    """Killed at step 1000 of a job that saves every thousand: saving, not a leak over the steps."""
    log = (
        " 17%|███  | 1000/6060 [6:44:48<34:21:44, 24.45s/it]\n"
        "[2023-10-16 05:06:02,579] [ERROR] [launch.py:321:sigkill_handler] ['python', 'src/train_bash.py'] exits with return code = -9\n"
    )
    for every, rules in ((1000, ["killed-when-a-save-was-due"]), (300, ["host-fills-over-the-steps"])):
        command = COMMAND.format(file="fsdp_config.yaml").rstrip("\n") + f" --save_steps {every}\n"
        assert [cause.rule for cause in explain([log], configs=[command]).judgement.causes if not cause.also_true] == rules


def test_no_kernel_that_the_framework_of_the_traceback_lacks() -> None:
    """A bare traceback through slime: Megatron-LM has no switch for Liger, so it is no advice."""
    log = (
        'Traceback (most recent call last):\n  File "/root/slime/slime/backends/megatron_utils/actor.py", line 368, in train\n'
        '    self.step()\n  File "/root/Megatron-LM/megatron/core/transformer/module.py", line 373, in float_conversion\n'
        "    val = val.float()\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 21.34 GiB. GPU 3 has a total capacity of "
        "79.11 GiB of which 7.07 GiB is free.\n"
    )
    offered = [remedy.rule for remedy in explain([log]).outcome.remedies]
    assert offered[0] == "fewer-tokens-in-dynamic-batches"
    assert "liger-kernel" not in offered
