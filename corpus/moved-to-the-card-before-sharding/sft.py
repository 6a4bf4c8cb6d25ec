import torch
from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import SFTConfig, SFTTrainer

args = SFTConfig(
    output_dir="out",
    per_device_train_batch_size=1,
    gradient_accumulation_steps=8,
    gradient_checkpointing=True,
    max_length=2048,
    bf16=True,
    deepspeed="ds_zero3.json",
)
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-14B", torch_dtype=torch.bfloat16).to("cuda")
trainer = SFTTrainer(
    model=model,
    args=args,
    train_dataset=load_dataset("json", data_files="chat.jsonl", split="train"),
    processing_class=AutoTokenizer.from_pretrained("Qwen/Qwen2.5-14B"),
)
trainer.train()
