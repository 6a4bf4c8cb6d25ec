#!/bin/bash
MODEL_ID="${MODEL_ID:-meta-llama/Llama-3.1-8B-Instruct}"
MODEL_LENGTH="${MODEL_LENGTH:-16384}"
GPU_MEMORY_UTILIZATION="${GPU_MEMORY_UTILIZATION:-0.90}"
TENSOR_PARALLEL_SIZE="${TENSOR_PARALLEL_SIZE:-1}"
MAX_NUM_SEQS="${MAX_NUM_SEQS:-256}"
MAX_NUM_BATCHED_TOKENS="${MAX_NUM_BATCHED_TOKENS:-}"
ENABLE_PREFIX_CACHING="${ENABLE_PREFIX_CACHING:-true}"
NAME=serve

build() {
    local cmd="docker run"
    cmd+=" --gpus all"
    if [[ -n "${API_KEY:-}" ]]; then
        cmd+=" --env VLLM_API_KEY=${API_KEY}"
    fi
    cmd+=" --ipc=host"
    cmd+=" --ulimit memlock=-1"
    cmd+=" --name ${NAME}"
    cmd+=" -d"
    cmd+=" vllm/vllm-openai:v0.8.5"
    cmd+=" --host 0.0.0.0"
    cmd+=" --port 8000"
    cmd+=" --model ${MODEL_ID}"
    cmd+=" --dtype auto"
    cmd+=" --max-model-len ${MODEL_LENGTH}"
    cmd+=" --gpu-memory-utilization ${GPU_MEMORY_UTILIZATION}"
    cmd+=" --tensor-parallel-size ${TENSOR_PARALLEL_SIZE}"
    cmd+=" --max-num-seqs ${MAX_NUM_SEQS}"
    if [[ -n "$MAX_NUM_BATCHED_TOKENS" ]]; then
        cmd+=" --max-num-batched-tokens ${MAX_NUM_BATCHED_TOKENS}"
    fi
    if [[ "$ENABLE_PREFIX_CACHING" == "true" ]]; then
        cmd+=" --enable-prefix-caching"
    fi
    echo "$cmd"
}

docker stop ${NAME} || true
eval "$(build)"
