import torch
from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainingArguments, Trainer, DataCollatorForLanguageModeling
from peft import LoraConfig, get_peft_model

MODEL = "meta-llama/Meta-Llama-3-8B"
tok = AutoTokenizer.from_pretrained(MODEL)
model = AutoModelForCausalLM.from_pretrained(MODEL, torch_dtype=torch.bfloat16, device_map={"": 0})
model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
ds = load_dataset("json", data_files="train.json")["train"].map(lambda b: tok(b["text"]), batched=True)
args = TrainingArguments(output_dir="out", per_device_train_batch_size=2, gradient_accumulation_steps=8, bf16=True, num_train_epochs=3, learning_rate=2e-4)
trainer = Trainer(model=model, args=args, train_dataset=ds, data_collator=DataCollatorForLanguageModeling(tok, mlm=False))
trainer.train()
