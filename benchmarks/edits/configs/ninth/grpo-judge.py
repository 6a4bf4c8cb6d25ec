from trl import GRPOConfig, GRPOTrainer, ModelConfig, get_peft_config
from datasets import load_dataset

model_config = ModelConfig(
    model_name_or_path="Qwen/Qwen2.5-3B-Instruct",
    torch_dtype="bfloat16",
    attn_implementation="flash_attention_2",
    use_peft=True,
    load_in_4bit=True,
)

# numbers
training_args = GRPOConfig(
    output_dir="long_clean",
    save_steps=5,
    # save_total_limit=1,
    learning_rate=1e-4,
    lr_scheduler_type="cosine",
    logging_steps=1,
    max_steps=10000,
    per_device_train_batch_size=3,
    gradient_accumulation_steps=20,
    gradient_checkpointing=True,
    gradient_checkpointing_kwargs={"use_reentrant": False},
    bf16=True,
    max_grad_norm=1.0, 
    num_train_epochs=1,
    # of GRPO
    max_prompt_length=128,
    max_completion_length=1024, #of an answer
    num_generations=3, # completions
    beta=0.001,   
    # use_vllm=True,
    # vllm_gpu_memory_utilization= 0.2,
)

trainer = GRPOTrainer(
    model=model_config.model_name_or_path,
    reward_funcs=[lambda completions, **k: [0.0] * len(completions)],
    args=training_args,
    train_dataset=load_dataset("json", data_files="d.jsonl", split="train"),
    peft_config=get_peft_config(model_config),
)
trainer.train()
