import os
import argparse
from datasets import load_dataset
from transformers import AutoTokenizer, AutoModelForCausalLM, Trainer, TrainingArguments
from peft import get_peft_model, LoraConfig, TaskType

def parse_args():
    parser = argparse.ArgumentParser(description="adapters for phi")
    parser.add_argument("--model_name_or_path", type=str, default="microsoft/phi-2")
    parser.add_argument("--train_file", type=str, default="train.jsonl")
    parser.add_argument("--output_dir", type=str, default="./models/phi")
    parser.add_argument("--num_train_epochs", type=int, default=3)
    parser.add_argument("--per_device_train_batch_size", type=int, default=4)
    parser.add_argument("--learning_rate", type=float, default=3e-4)
    parser.add_argument("--max_seq_length", type=int, default=512)
    return parser.parse_args()

def main():
    args = parse_args()

    tokenizer = AutoTokenizer.from_pretrained(args.model_name_or_path)
    model = AutoModelForCausalLM.from_pretrained(args.model_name_or_path)

    peft_config = LoraConfig(
        task_type=TaskType.CAUSAL_LM,
        inference_mode=False,
        r=8,
        lora_alpha=32,
        lora_dropout=0.1,
    )
    model = get_peft_model(model, peft_config)

    dataset = load_dataset('json', data_files={"train": args.train_file})

    def tokenize_fn(example):
        prompt = f"### Q: {example['instruction']}\n### A: {example['output']}"
        tokens = tokenizer(prompt, max_length=args.max_seq_length, truncation=True, padding="max_length")
        tokens["labels"] = tokens["input_ids"].copy()
        return tokens

    train = dataset["train"].map(tokenize_fn)
    training_args = TrainingArguments(
        output_dir=args.output_dir,
        num_train_epochs=args.num_train_epochs,
        per_device_train_batch_size=args.per_device_train_batch_size,
        learning_rate=args.learning_rate,
        fp16=True,
        logging_steps=10,
        save_strategy="epoch",
    )
    trainer = Trainer(model=model, args=training_args, train_dataset=train, tokenizer=tokenizer)
    trainer.train()
    model.save_pretrained(args.output_dir)

if __name__ == "__main__":
    main()
