import argparse
from peft import LoraConfig
from trl import GRPOConfig, GRPOTrainer

def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--model", default="Qwen/Qwen2.5-7B-Instruct")
    p.add_argument("--lora-init", default=None)
    p.add_argument("--train-batch-size", type=int, default=None)
    p.add_argument("--num-generations", type=int, default=8)
    p.add_argument("--max-steps", type=int, default=200)
    p.add_argument("--learning-rate", type=float, default=1e-5)
    p.add_argument("--temperature", type=float, default=1.0)
    p.add_argument("--beta", type=float, default=0.04)
    p.add_argument("--output-dir", default="out")
    return p.parse_args()

def main():
    args = parse()
    lora_config = None
    if not args.lora_init:
        lora_config = LoraConfig(r=16, lora_alpha=32, target_modules=["q_proj", "v_proj"], lora_dropout=0.05, bias="none", task_type="CAUSAL_LM")
    grpo_config = GRPOConfig(
        output_dir=args.output_dir,
        num_train_epochs=1,
        # four prompts a step
        per_device_train_batch_size=(
            args.train_batch_size if args.train_batch_size
            else args.num_generations * 4
        ),
        gradient_accumulation_steps=1,
        learning_rate=args.learning_rate,
        logging_steps=5,
        save_steps=25,
        max_steps=args.max_steps,
        num_generations=args.num_generations,
        max_prompt_length=1536,
        max_completion_length=512,  # as in inference
        temperature=args.temperature,
        beta=args.beta,
        remove_unused_columns=False,
        bf16=True,
    )
    GRPOTrainer(model=args.model, args=grpo_config, train_dataset=None, reward_funcs=[], peft_config=lora_config).train()

main()
