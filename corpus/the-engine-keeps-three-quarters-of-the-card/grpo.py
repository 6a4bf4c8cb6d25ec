from datasets import load_dataset
from trl import GRPOConfig, GRPOTrainer

args = GRPOConfig(
    output_dir="out",
    model_init_kwargs={"torch_dtype": "bfloat16", "attn_implementation": "flash_attention_2"},
    bf16=True,
    use_vllm=True,
    vllm_mode="colocate",
    vllm_gpu_memory_utilization=0.75,
    per_device_train_batch_size=8,
    num_generations=8,
    max_prompt_length=512,
    max_completion_length=1024,
    gradient_checkpointing=True,
    beta=0.0,
)
trainer = GRPOTrainer(
    model="Qwen/Qwen2.5-3B",
    args=args,
    reward_funcs=lambda completions, **kw: [float(len(c)) for c in completions],
    train_dataset=load_dataset("trl-lib/tldr", split="train"),
)
trainer.train()
