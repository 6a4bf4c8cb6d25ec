python3 examples/math/gsm8k_rl.py --config grpo.yaml \
    actor.mb_spec.max_tokens_per_mb=4096 \
    gconfig.max_new_tokens=2048
