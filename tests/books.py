"""Books of facts for the ledger's tests: the reference failures by their figures, and small jobs to turn knobs on."""

from __future__ import annotations

from typing import Any

from diagnose import catalogue
from diagnose.catalogue import Model
from diagnose.facts import Fact, FactBook, Origin, Value, Witness, typed
from diagnose.parse.model.event import Event, Frame
from diagnose.units import Size, size_of

GIB = 2**30

LLAMAFACTORY_6800: dict[str, Any] = {
    "model": "Qwen/Qwen2-VL-7B-Instruct",
    "train.framework": "llamafactory",
    "version.llamafactory": "0.9.2.dev0",
    "version.transformers": "4.48.2",
    "version.deepspeed": "0.16.2",
    "train.stage": "dpo",
    "train.finetuning": "full",
    "train.precision": "fp16",
    "train.ref_model": "copy",
    "parallel.world": 8,
    "train.micro_batch_size": 1,
    "train.gradient_accumulation": 8,
    "train.max_seq_len": 4096,
    "train.gradient_checkpointing": "enabled",
    "zero.stage": 3,
    "zero.reduce_bucket": 500000000,
    "zero.prefetch_bucket": 500000000,
    "zero.max_live_parameters": 1000000000,
    "zero.sub_group": 1000000000,
    "model.attention": "sdpa",
    "model.trainable_params": 7615616512,
    "log.family": "torch_cuda",
    "log.phase": "loss",
    "log.step": 0,
    "log.frame": "torch/nn/functional.py:cross_entropy",
    "log.requested": "4.64 GiB",
    "log.capacity": "31.74 GiB",
    "log.free": "1.41 GiB",
    "log.process_in_use": "30.26 GiB",
    "log.allocated": "23.51 GiB",
    "log.reserved_unallocated": "5.51 GiB",
}

CONFIG_INCOMPLETE = {
    name: value
    for name, value in LLAMAFACTORY_6800.items()
    if not name.startswith("zero.") and name not in ("train.precision", "version.llamafactory", "version.transformers", "version.deepspeed")
}

AXOLOTL_2143: dict[str, Any] = {
    "model": "meta-llama/Llama-3.2-3B-Instruct",
    "train.framework": "axolotl",
    "version.axolotl": "0.6.0",
    "version.transformers": "4.47.0",
    "train.stage": "sft",
    "train.finetuning": "full",
    "train.precision": "bf16",
    "parallel.world": 8,
    "train.micro_batch_size": 1,
    "train.gradient_accumulation": 4,
    "train.max_seq_len": 512,
    "train.gradient_checkpointing": "disabled",
    "model.attention": "sdpa",
    "train.packing": "disabled",
    "zero.stage": 3,
    "zero.offload_optimizer": "cpu",
    "zero.offload_param": "cpu",
    "zero.max_live_parameters": 0,
    "log.family": "torch_cuda",
    "log.phase": "backward",
    "log.step": 7,
    "log.frame": "torch/autograd/graph.py:_engine_run_backward",
    "log.requested": "20.00 MiB",
    "log.capacity": "79.15 GiB",
    "log.free": "15.19 MiB",
    "log.process_in_use": "79.13 GiB",
    "log.allocated": "71.86 GiB",
    "log.reserved_unallocated": "5.74 GiB",
    "log.allocated_after_init": "0.01 GiB",
}

DEEPSEEK: dict[str, Any] = AXOLOTL_2143 | {
    "model": "deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct",
    "train.max_seq_len": 2048,
    "train.micro_batch_size": 4,
    "model.attention": "eager",
    "log.phase": "attention",
    "log.step": 0,
    "log.frame": "torch/nn/functional.py:softmax",
    "log.requested": "1024.00 MiB",
    "log.free": "409.69 MiB",
    "log.process_in_use": "78.74 GiB",
    "log.allocated": "76.88 GiB",
    "log.reserved_unallocated": "460.48 MiB",
    "log.allocated_after_init": None,
}

TRL_3172: dict[str, Any] = {
    "model": "Qwen/Qwen2.5-7B",
    "train.framework": "trl",
    "version.trl": "0.17.0.dev0",
    "version.transformers": "4.49.0",
    "version.deepspeed": "0.15.4",
    "train.stage": "grpo",
    "train.finetuning": "lora",
    "lora.rank": 16,
    "lora.dropout": 0.05,
    "train.precision": "bf16",
    "train.load_dtype": "bf16",
    "parallel.world": 4,
    "lora.targets": "q_proj,v_proj,k_proj,o_proj,up_proj,down_proj,gate_proj",
    "model.attention": "flash_attention_2",
    "train.micro_batch_size": 16,
    "rollout.num_generations": 8,
    "rollout.prompt_len": 512,
    "rollout.completion_len": 2048,
    "rollout.engine": "vllm",
    "rollout.placement": "separate",
    "train.gradient_checkpointing": "disabled",
    "train.gradient_accumulation": 1,
    "zero.stage": 3,
    "zero.offload_param": "none",
    "zero.offload_optimizer": "none",
    "script.cuda_before_shard": "enabled",
    "log.family": "torch_cuda",
    "log.phase": "forward",
    "log.step": 0,
    "log.frame": "transformers/models/qwen2/modeling_qwen2.py:forward",
    "log.requested": "1.43 GiB",
    "log.capacity": "79.10 GiB",
    "log.free": "38.81 MiB",
    "log.process_in_use": "79.06 GiB",
    "log.allocated": "77.54 GiB",
    "log.reserved_unallocated": "514.15 MiB",
}

OPENRLHF_392: dict[str, Any] = {
    "model": "deepseek-ai/deepseek-moe-16b-base",
    "reward": "meta-llama/Meta-Llama-3-8B-Instruct",
    "train.framework": "openrlhf",
    "version.openrlhf": "0.3.8",
    "version.transformers": "4.43.1",
    "train.stage": "ppo",
    "train.finetuning": "full",
    "train.precision": "bf16",
    "actor.gpus": 4,
    "critic.gpus": 2,
    "reward.gpus": 2,
    "ref.gpus": 1,
    "rollout.engines": 1,
    "ref.offload": "enabled",
    "colocate.critic_reward": "enabled",
    "train.micro_batch_size": 4,
    "train.global_batch": 16,
    "rollout.micro_batch": 8,
    "rollout.batch": 32,
    "rollout.prompt_len": 1024,
    "rollout.completion_len": 1024,
    "zero.stage": 3,
    "zero.reduce_bucket": 500000000,
    "zero.grad_accum_dtype": "fp32",
    "train.gradient_checkpointing": "enabled",
    "model.attention": "eager",
    "rollout.gpu_memory_utilization": 0.9,
    "log.family": "torch_cuda",
    "log.phase": "loss",
    "log.role": "actor",
    "log.micro_step": 1,
    "log.frame": "torch/nn/functional.py:log_softmax",
    "log.requested": "3.12 GiB",
    "log.capacity": "79.15 GiB",
    "log.free": "1.17 GiB",
    "log.process_in_use": "77.97 GiB",
    "log.allocated": "75.90 GiB",
    "log.reserved_unallocated": "450.56 MiB",
    "log.allocated_after_init": "39.06 GiB",
}

OPENRLHF_964: dict[str, Any] = {
    "model": "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",
    "train.framework": "openrlhf",
    "version.openrlhf": "0.7.0",
    "train.stage": "grpo",
    "train.finetuning": "full",
    "train.precision": "bf16",
    "actor.gpus": 8,
    "ref.gpus": 8,
    "rollout.engines": 8,
    "colocate.all": "enabled",
    "rollout.gpu_memory_utilization": 0.65,
    "rollout.sleep": "enabled",
    "parallel.context": 4,
    "rollout.batch": 512,
    "rollout.num_generations": 16,
    "rollout.micro_batch": 1,
    "train.micro_batch_size": 1,
    "rollout.prompt_len": 2048,
    "rollout.completion_len": 30720,
    "zero.stage": 3,
    "train.packing": "enabled",
    "train.gradient_checkpointing": "enabled",
    "model.attention": "flash_attention_2",
    "log.family": "torch_cuda",
    "log.phase": "generation",
    "log.role": "actor",
    "log.step": 3,
    "log.engine_awake": "enabled",
    "log.requested": "2.14 GiB",
    "log.capacity": "79.25 GiB",
    "log.free": "1.24 GiB",
    "log.process_in_use": "21.29 GiB",
    "log.allocated": "19.31 GiB",
    "log.reserved_unallocated": "611.52 MiB",
}


def book(facts: dict[str, Any], **changes: Any) -> FactBook:
    """A book of these facts; `model` and `reward` are catalogue ids or shapes, None leaves a fact out, dots are written as __."""
    entries = facts | {name.replace("__", "."): value for name, value in changes.items()}
    learnt: list[Fact] = []
    for name, value in entries.items():
        if value is None:
            continue
        if name in ("model", "reward"):
            shape = value if isinstance(value, Model) else catalogue.model(value)
            assert shape is not None, value
            learnt += [fact(f"{which}.shape", shape, "catalogue") for which in ([name] if name == "model" else ["reward", "critic"])]
        else:
            origin: Origin = "log" if name.startswith("log.") else "config"
            learnt.append(fact(name, typed(name, str(value)), origin))
    return FactBook(learnt)


def fact(name: str, value: Value, origin: Origin = "given") -> Fact:
    return Fact(name, value, origin, Witness(origin))


def size(text: str) -> Size:
    known = size_of(text)
    assert known is not None, text
    return known


def event(requested: str, phase: str = "loss", frame: str = "", family: str = "torch_cuda", **more: Any) -> Event:
    """A failure with one innermost frame, written "file:function|statement"."""
    file, _, rest = frame.partition(":")
    function, _, statement = rest.partition("|")
    frames = (Frame(file, 1, function, statement),) if frame else ()
    return Event(family=family, phase=phase, requested=size(requested), frames=frames, **more)
