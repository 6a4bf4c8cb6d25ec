#!/usr/bin/env bash
set -eu
HOST=${1:-0.0.0.0}
PORT=${2:-30100}
TP=${3:-2}
exec python -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1-Distill-Llama-70B \
  --host $HOST --port $PORT --tp $TP --mem-fraction-static 0.88 --cuda-graph-max-bs 160 --enable-mixed-chunk
