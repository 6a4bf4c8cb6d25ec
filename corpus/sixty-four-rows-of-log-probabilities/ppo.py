from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer
from trl import PPOConfig, PPOTrainer

model_id = "meta-llama/Llama-3.2-1B-Instruct"
tokenizer = AutoTokenizer.from_pretrained(model_id, padding_side="left")
policy = AutoModelForCausalLM.from_pretrained(model_id, torch_dtype="bfloat16")
ref_policy = AutoModelForCausalLM.from_pretrained(model_id, torch_dtype="bfloat16")
value_model = AutoModelForSequenceClassification.from_pretrained(model_id, num_labels=1, torch_dtype="bfloat16")
reward_model = AutoModelForSequenceClassification.from_pretrained(model_id, num_labels=1, torch_dtype="bfloat16")
args = PPOConfig(
    output_dir="out",
    per_device_train_batch_size=4,
    gradient_accumulation_steps=16,
    local_rollout_forward_batch_size=64,
    response_length=512,
    bf16=True,
    gradient_checkpointing=True,
)
trainer = PPOTrainer(
    args=args,
    processing_class=tokenizer,
    model=policy,
    ref_model=ref_policy,
    reward_model=reward_model,
    value_model=value_model,
    train_dataset=load_dataset("trl-lib/tldr", split="train"),
)
trainer.train()
