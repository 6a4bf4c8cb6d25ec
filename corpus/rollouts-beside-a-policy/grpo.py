from trl import GRPOConfig, GRPOTrainer

args = GRPOConfig(
    output_dir="grpo",
    use_vllm=True,
    vllm_mode="colocate",
    vllm_gpu_memory_utilization=0.6,
    per_device_train_batch_size=4,
    num_generations=8,
    max_completion_length=2048,
    model_init_kwargs={"dtype": "bfloat16"},
)
GRPOTrainer(model="Qwen/Qwen2.5-3B-Instruct", reward_funcs=score, args=args, train_dataset=rows).train()
