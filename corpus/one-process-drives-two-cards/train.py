from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
args = TrainingArguments(output_dir="o", per_device_train_batch_size=2, gradient_accumulation_steps=4, fp16=True, gradient_checkpointing=True)
Trainer(model=model, args=args, train_dataset=ds).train()
