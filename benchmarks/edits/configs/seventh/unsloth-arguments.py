from transformers import TrainingArguments
from trl import SFTTrainer
from unsloth import FastLanguageModel

model, tokenizer = FastLanguageModel.from_pretrained(model_name="unsloth/llama-3-8b-bnb-4bit", load_in_4bit=True)
model = FastLanguageModel.get_peft_model(model, r=16, use_gradient_checkpointing="unsloth", max_seq_length=2048)
trainer = SFTTrainer(
    model=model,
    tokenizer=tokenizer,
    train_dataset=rows,
    args=TrainingArguments(
        per_device_train_batch_size=4, gradient_accumulation_steps=2, fp16=True, optim="adamw_8bit", output_dir="out"
    ),
)
trainer.train()
