from trl import GRPOConfig, GRPOTrainer
from peft import LoraConfig

args = GRPOConfig(
    output_dir="o",
    per_device_train_batch_size=8,
    num_generations=8,
    max_prompt_length=512,
    max_completion_length=1024,
    gradient_accumulation_steps=2,
    bf16=True,
    gradient_checkpointing=True,
)
trainer = GRPOTrainer(
    model="Qwen/Qwen2.5-7B-Instruct",
    reward_funcs=f,
    args=args,
    train_dataset=d,
    peft_config=LoraConfig(r=16, target_modules=["q_proj", "v_proj"]),
)
trainer.train()
