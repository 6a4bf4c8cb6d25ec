from unsloth import FastLanguageModel
from transformers import TrainingArguments
from trl import SFTTrainer

limit = 12000
model, tokenizer = FastLanguageModel.from_pretrained("unsloth/llama-3-8b-bnb-4bit", max_seq_length=limit, load_in_4bit=True)
model = FastLanguageModel.get_peft_model(model, r=8, target_modules=["q_proj", "v_proj"], lora_dropout=0, use_gradient_checkpointing="unsloth")
trainer = SFTTrainer(
    model=model,
    train_dataset=data,
    max_seq_length=limit,
    args=TrainingArguments(output_dir="out", per_device_train_batch_size=2, gradient_accumulation_steps=2, fp16=True, optim="adamw_8bit"),
)
trainer.train()
