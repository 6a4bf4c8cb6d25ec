from trlx.data.default_configs import ModelConfig, OptimizerConfig, PPOConfig, TrainConfig, TRLConfig

config = TRLConfig(
    train=TrainConfig(seq_length=512, epochs=20, total_steps=4000, batch_size=8, trainer="AcceleratePPOTrainer"),
    model=ModelConfig(model_path="EleutherAI/gpt-j-6B", num_layers_unfrozen=8),
    optimizer=OptimizerConfig(name="adamw", kwargs=dict(lr=1.0e-5)),
    method=PPOConfig(name="PPOConfig", num_rollouts=256, chunk_size=64, gen_kwargs=dict(max_new_tokens=128, top_k=0)),
)
