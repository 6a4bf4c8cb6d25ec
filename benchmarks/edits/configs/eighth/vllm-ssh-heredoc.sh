#!/usr/bin/env bash
set -euo pipefail
D_HOST="${D_HOST:-10.0.0.12}"
D_MODEL="${D_MODEL:-Qwen/Qwen2.5-7B-Instruct}"
IMAGE="${IMAGE:-nvcr.io/nvidia/vllm:26.05-py3}"
GPU_MEM_UTIL="${GPU_MEM_UTIL:-0.4}"
MAX_MODEL_LEN="${MAX_MODEL_LEN:-16384}"

replica() {
  local name="$1" port="$2" util="$3"
  echo "==> $name on $D_HOST"
  ssh "u@${D_HOST}" bash -s <<EOF
set -euo pipefail
docker rm -f ${name} >/dev/null 2>&1 || true
docker run -d --gpus all --ipc=host --name ${name} \\
  -p ${port}:${port} \\
  ${IMAGE} \\
  vllm serve ${D_MODEL} \\
    --port ${port} \\
    --block-size 64 \\
    --gpu-memory-utilization ${util} \\
    --max-model-len ${MAX_MODEL_LEN} \\
    --enforce-eager
EOF
}
replica one 8001 "$GPU_MEM_UTIL"
