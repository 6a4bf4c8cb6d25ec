from datasets import load_dataset
from trl import GRPOConfig, GRPOTrainer

args = GRPOConfig(
    output_dir="out",
    model_init_kwargs={"torch_dtype": "bfloat16"},
    bf16=True,
    use_vllm=True,
    vllm_mode="colocate",
    vllm_gpu_memory_utilization=0.9,
    per_device_train_batch_size=4,
    num_generations=4,
)
trainer = GRPOTrainer(
    model="Qwen/Qwen2.5-1.5B",
    args=args,
    reward_funcs=lambda completions, **kw: [0.0 for _ in completions],
    train_dataset=load_dataset("trl-lib/tldr", split="train"),
)
trainer.train()
