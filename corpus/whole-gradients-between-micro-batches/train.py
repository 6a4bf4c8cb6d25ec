from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

args = TrainingArguments("out", per_device_train_batch_size=1, gradient_accumulation_steps=8, bf16=True, gradient_checkpointing=True)
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-14B-Instruct", torch_dtype="bfloat16")
trainer = Trainer(model=model, args=args, train_dataset=data)
trainer.train()
