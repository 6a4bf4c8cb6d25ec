from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-14B")
tokenizer = AutoTokenizer.from_pretrained("Qwen/Qwen2.5-14B")

args = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=1,
    gradient_checkpointing=True,
    bf16=True,
    deepspeed="ds_zero3.json",
)
data = load_dataset("json", data_files="train.jsonl", split="train")
trainer = Trainer(model=model, args=args, train_dataset=data, processing_class=tokenizer)
trainer.train()
