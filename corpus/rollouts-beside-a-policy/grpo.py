import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:128"

from peft import LoraConfig
from trl import GRPOConfig, GRPOTrainer


def reward_len(completions, **kwargs):
    return [-abs(20 - len(completion)) for completion in completions]


generation = dict(
    use_vllm=True,
    vllm_mode="colocate",
    vllm_gpu_memory_utilization=0.45,
    vllm_tensor_parallel_size=2,
    num_generations=16,
    max_completion_length=1024,
)

training_args = GRPOConfig(
    output_dir="grpo",
    per_device_train_batch_size=8,
    gradient_accumulation_steps=2,
    beta=0.04,
    model_init_kwargs={"dtype": "bfloat16", "attn_implementation": "flash_attention_2"},
    **generation,
)
training_args.gradient_checkpointing = False

trainer = GRPOTrainer(
    model="Qwen/Qwen2.5-1.5B-Instruct",
    reward_funcs=reward_len,
    args=training_args,
    train_dataset=None,
    peft_config=LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj", "v_proj"]),
)
trainer.train()
