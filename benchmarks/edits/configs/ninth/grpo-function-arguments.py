import torch
from peft import LoraConfig
from transformers import AutoTokenizer
from trl import GRPOConfig, GRPOTrainer
import config

def create_trainer(model, train_dataset, eval_dataset, out_dir,
                   rewards,
                   max_prompt_length: int = 256,
                   max_seq_len: int = 1024,
                   tokenizer : AutoTokenizer = config.TOKENIZER,
                   peft_config: LoraConfig = config.PEFT_CONF):
    grpo_config = GRPOConfig(
        output_dir=out_dir,
        learning_rate=5e-6,
        adam_beta1 = 0.9,
        adam_beta2 = 0.99,
        weight_decay = 0.1,
        warmup_ratio = 0.1,
        lr_scheduler_type='cosine',
        logging_steps=1,
        bf16=True,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=4,
        num_generations=4,
        max_prompt_length=max_prompt_length,
        max_completion_length=max_seq_len-max_prompt_length,
        num_train_epochs=1,
        save_steps=100,
        max_grad_norm=0.1,
        log_on_each_node=False,
        report_to="mlflow",
    )
    return GRPOTrainer(
        model = model,
        processing_class = tokenizer,
        reward_funcs = rewards.get(),
        args = grpo_config,
        peft_config=peft_config,
        train_dataset = train_dataset,
        eval_dataset=eval_dataset,
    )
