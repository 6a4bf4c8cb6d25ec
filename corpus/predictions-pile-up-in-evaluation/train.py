import evaluate
import numpy as np
from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments

model_id = "Qwen/Qwen2.5-0.5B"
tokenizer = AutoTokenizer.from_pretrained(model_id)
model = AutoModelForCausalLM.from_pretrained(model_id)
accuracy = evaluate.load("accuracy")


def compute_metrics(pred):
    return accuracy.compute(predictions=np.argmax(pred.predictions, -1).ravel(), references=pred.label_ids.ravel())


args = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=2,
    per_device_eval_batch_size=8,
    eval_strategy="steps",
    eval_steps=200,
    bf16=True,
    gradient_checkpointing=True,
    num_train_epochs=1,
)
data = load_dataset("json", data_files={"train": "train.jsonl", "test": "test.jsonl"})
trainer = Trainer(
    model=model,
    args=args,
    train_dataset=data["train"],
    eval_dataset=data["test"],
    processing_class=tokenizer,
    compute_metrics=compute_metrics,
)
trainer.train()
