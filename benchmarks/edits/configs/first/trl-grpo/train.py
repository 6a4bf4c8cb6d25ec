import re
from datasets import load_dataset
from trl import GRPOConfig, GRPOTrainer

dataset = load_dataset("openai/gsm8k", "main", split="train")

def reward(completions, **kwargs):
    return [float(bool(re.search(r"####", text))) for text in completions]

args = GRPOConfig(
    output_dir="grpo-out",
    learning_rate=1e-6,
    per_device_train_batch_size=8,
    num_generations=8,
    max_prompt_length=512,
    max_completion_length=2048,
    use_vllm=True,
    bf16=True,
)
trainer = GRPOTrainer("Qwen/Qwen2.5-7B-Instruct", reward_funcs=reward, args=args, train_dataset=dataset)
trainer.train()
