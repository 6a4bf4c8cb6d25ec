#!/bin/bash
# rollout and training on the same eight cards
PERF_ARGS=(
   --tensor-model-parallel-size 2
   --sequence-parallel
   --recompute-granularity full
   --recompute-method uniform
   --recompute-num-layers 1
   --use-dynamic-batch-size
   --max-tokens-per-gpu 9216
)
ray job submit --address="http://127.0.0.1:8265" -- python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 --colocate \
   --hf-checkpoint Qwen/Qwen3-4B --rollout-batch-size 32 --n-samples-per-prompt 8 --rollout-max-response-len 8192 --global-batch-size 256 \
   --advantage-estimator grpo --rollout-num-gpus-per-engine 2 --sglang-mem-fraction-static 0.7 ${PERF_ARGS[@]}
