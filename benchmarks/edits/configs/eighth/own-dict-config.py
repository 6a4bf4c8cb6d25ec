import yaml
from unsloth import FastLanguageModel
from datasets import load_dataset
from trl import SFTConfig, SFTTrainer

config = yaml.safe_load(open("config.yaml"))
max_seq_length = config["model"]["max_seq_length"]
model, tokenizer = FastLanguageModel.from_pretrained(
    model_name=config["model"]["name"],
    max_seq_length=max_seq_length,
    dtype=None,
    load_in_4bit=config["model"]["load_in_4bit"],
)
model = FastLanguageModel.get_peft_model(
    model,
    r=16,
    target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
    lora_alpha=16,
    lora_dropout=0,
    bias="none",
    use_gradient_checkpointing="unsloth",
)
dataset = load_dataset(config["dataset"]["name"], split="train")

trainer = SFTTrainer(
    model=model,
    tokenizer=tokenizer,
    train_dataset=dataset,
    dataset_text_field="text",
    max_seq_length=max_seq_length,
    dataset_num_proc=config["training"]["dataset_num_proc"],
    packing=config["training"]["packing"],
    args=SFTConfig(
        per_device_train_batch_size=config["training"]["per_device_train_batch_size"],
        gradient_accumulation_steps=config["training"]["gradient_accumulation_steps"],
        warmup_steps=config["training"]["warmup_steps"],
        max_steps=config["training"]["max_steps"],
        learning_rate=config["training"]["learning_rate"],
        optim=config["training"]["optim"],
        seed=config["training"]["seed"],
        output_dir=config["training"]["output_dir"],
    ),
)
trainer.train()
