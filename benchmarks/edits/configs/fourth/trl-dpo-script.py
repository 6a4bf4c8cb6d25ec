import torch
from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import DPOConfig, DPOTrainer

name = "mistralai/Mistral-7B-Instruct-v0.3"
model = AutoModelForCausalLM.from_pretrained(name, torch_dtype=torch.bfloat16, device_map={"": 0})
reference = AutoModelForCausalLM.from_pretrained(name, torch_dtype=torch.bfloat16, device_map={"": 0})
tok = AutoTokenizer.from_pretrained(name)
tok.pad_token = tok.eos_token

config = DPOConfig(
    "mistral-dpo",
    per_device_train_batch_size=4,
    gradient_accumulation_steps=4,
    learning_rate=5e-7,
    max_length=2048,
    max_prompt_length=1024,
    bf16=True,
    logging_steps=10,
    beta=0.1,
)
trainer = DPOTrainer(model, reference, args=config, train_dataset=load_dataset("trl-lib/ultrafeedback_binarized", split="train"), processing_class=tok)
trainer.train()
