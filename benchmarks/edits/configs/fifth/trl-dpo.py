import torch
from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import DPOConfig, DPOTrainer

NAME = "meta-llama/Llama-3.1-8B-Instruct"
model = AutoModelForCausalLM.from_pretrained(NAME, torch_dtype=torch.bfloat16)
ref_model = AutoModelForCausalLM.from_pretrained(NAME, torch_dtype=torch.bfloat16)
args = DPOConfig("dpo-out", per_device_train_batch_size=4, gradient_accumulation_steps=8, max_length=4096, bf16=True,
                 learning_rate=5e-7, gradient_checkpointing=False)
trainer = DPOTrainer(model, ref_model, args=args, train_dataset=load_dataset("trl-lib/ultrafeedback_binarized", split="train"),
                     processing_class=AutoTokenizer.from_pretrained(NAME))
trainer.train()
