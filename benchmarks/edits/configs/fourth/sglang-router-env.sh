#!/bin/bash
# one answerer for the evaluation harness; everything can be set from outside
CKPT=${CKPT:-Qwen/Qwen3-32B}
GPUS=${GPUS:-4}
FRACTION=${FRACTION:-0.92}

echo "serving $CKPT on $GPUS cards"
python3 -m sglang.launch_server \
    --model-path "$CKPT" \
    --tp-size "$GPUS" \
    --mem-fraction-static "$FRACTION" \
    --context-length 65536 \
    --chunked-prefill-size 8192 \
    --max-running-requests 256 \
    --host 0.0.0.0 --port 31000
