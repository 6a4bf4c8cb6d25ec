from datasets import load_dataset
from trl import GRPOConfig, GRPOTrainer


def brevity(completions, **kwargs):
    return [-float(len(completion)) for completion in completions]


arguments = GRPOConfig(
    output_dir="out",
    bf16=True,
    use_vllm=True,
    vllm_gpu_memory_utilization=0.9,
    max_completion_length=512,
    per_device_train_batch_size=4,
    num_generations=4,
)
trainer = GRPOTrainer(
    model="Qwen/Qwen2.5-7B-Instruct",
    reward_funcs=brevity,
    args=arguments,
    train_dataset=load_dataset("trl-lib/tldr", split="train"),
)
trainer.train()
