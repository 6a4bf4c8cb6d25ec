#!/bin/bash
python3 -m verl.trainer.main_ppo \
    actor_rollout_ref.actor.fsdp_config.param_offload=false \
    actor_rollout_ref.actor.fsdp_config.optimizer_offload=false
