import torch
from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import SFTConfig, SFTTrainer

model = AutoModelForCausalLM.from_pretrained(
    "Qwen/Qwen2.5-3B",
    torch_dtype=torch.bfloat16,
).to("cuda:0")
tokenizer = AutoTokenizer.from_pretrained("Qwen/Qwen2.5-3B")

args = SFTConfig(
    output_dir="out",
    per_device_train_batch_size=1,
    gradient_accumulation_steps=4,
    gradient_checkpointing=True,
    max_seq_length=1024,
    bf16=True,
)
trainer = SFTTrainer(
    model=model,
    args=args,
    train_dataset=load_dataset("json", data_files="chat.jsonl", split="train"),
    processing_class=tokenizer,
)
trainer.train()
