from peft import LoraConfig
from transformers import AutoModelForCausalLM
from trl import DPOConfig, DPOTrainer

model = AutoModelForCausalLM.from_pretrained("mistralai/Mistral-7B-Instruct-v0.3", torch_dtype="bfloat16")
trainer = DPOTrainer(
    model=model,
    args=DPOConfig(output_dir="pairs", per_device_train_batch_size=1, bf16=True, max_length=8192),
    train_dataset=pairs,
    processing_class=tokenizer,
    peft_config=LoraConfig(r=16, lora_alpha=32, task_type="CAUSAL_LM"),
)
trainer.train()
