torchrun \
    --nproc_per_node=4 \
    -m reasons.trainer.ppo \
    train_data.path=some/rows \
    train_data.prompts_per_rollout=96 \
    actor.model_name=Qwen/Qwen3-4B \
    actor.cp_size=2 \
    actor.use_lora=true \
    actor.lora.r=24 \
    actor.lora.lora_alpha=48 \
    trainer.save_freq=16
