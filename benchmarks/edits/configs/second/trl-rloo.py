from trl import RLOOConfig, RLOOTrainer
from transformers import AutoModelForCausalLM

cfg = RLOOConfig(
    "o",
    per_device_train_batch_size=16,
    num_generations=4,
    max_completion_length=1024,
    gradient_accumulation_steps=1,
    bf16=True,
    use_vllm=True,
    vllm_mode="colocate",
)
t = RLOOTrainer(model="Qwen/Qwen2.5-3B", args=cfg, reward_funcs=r, train_dataset=d)
t.train()
