#!/usr/bin/env bash
set -e
export CONFIG_FILE="./qwen3-hsdp.toml" NGPU=8
./run_train.sh --training.local_batch_size 2 --activation_checkpoint.mode=none \
  --training.enable_cpu_offload --parallelism.fsdp_reshard_after_forward never \
  --training.micro-batch-size 4
