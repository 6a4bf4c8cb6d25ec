import os
from unsloth import FastLanguageModel
from trl import GRPOConfig, GRPOTrainer

SAVE_DIR = "/data/out"
MAX_GRPO_STEPS = 300
GRPO_BATCH_SIZE = 8
GRPO_GROUP_SIZE = 8
WANDB_ENABLED = bool(os.environ.get("WANDB_API_KEY"))

def train():
    model, tokenizer = FastLanguageModel.from_pretrained("unsloth/Qwen2.5-3B-Instruct", max_seq_length=2048, load_in_4bit=True)
    model = FastLanguageModel.get_peft_model(model, r=16, lora_alpha=32, target_modules=["q_proj", "k_proj", "v_proj", "o_proj"])

    def oracle_reward(prompts, completions, true_value, **_):
        return [1.0 for _ in completions]

    FastLanguageModel.for_training(model)

    grpo_config = GRPOConfig(
        output_dir=f"{SAVE_DIR}/grpo_out",
        max_steps=MAX_GRPO_STEPS,
        per_device_train_batch_size=GRPO_BATCH_SIZE,
        num_generations=GRPO_GROUP_SIZE,
        learning_rate=5e-6,
        logging_steps=10,
        save_steps=500,
        bf16=True,
        max_prompt_length=1024,
        max_completion_length=80,
        temperature=0.9,
        report_to=("wandb" if WANDB_ENABLED else "none"),
        run_name="stage1",
    )

    trainer = GRPOTrainer(
        model=model,
        reward_funcs=oracle_reward,
        args=grpo_config,
        train_dataset=prompt_ds,
    )
    trainer.train()

train()
