from trl import GRPOConfig, GRPOTrainer

args = GRPOConfig(output_dir="out", bf16=True, use_vllm=True, per_device_train_batch_size=4, num_generations=4)
trainer = GRPOTrainer(model="somebody/private-8b", args=args, reward_funcs=lambda completions, **kw: [0.0])
trainer.train()
