import numpy as np
from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments

model_id = "Qwen/Qwen2.5-1.5B"
tokenizer = AutoTokenizer.from_pretrained(model_id)
model = AutoModelForCausalLM.from_pretrained(model_id)
args = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=1,
    per_device_eval_batch_size=8,
    evaluation_strategy="steps",
    eval_steps=500,
    bf16=True,
    gradient_checkpointing=True,
)
data = load_dataset("json", data_files={"train": "train.jsonl", "test": "test.jsonl"})
trainer = Trainer(
    model=model,
    args=args,
    train_dataset=data["train"],
    eval_dataset=data["test"],
    tokenizer=tokenizer,
    compute_metrics=lambda p: {"mean": float(np.mean(p.predictions[0]))},
)
trainer.train()
