#!/bin/bash
MODEL=google/gemma-3-27b-it
ARGS=(
  --max-model-len 131072
  --gpu-memory-utilization 0.97
  --max-num-seqs 512
  --limit-mm-per-prompt '{"image": 4}'
  --dtype bfloat16
)
[ -n "${TP:-}" ] && ARGS+=(--tensor-parallel-size "$TP")
vllm serve "$MODEL" "${ARGS[@]}" --port 8009
