#!/bin/bash
BACKEND="${1:-vllm}"
MODEL=Qwen/Qwen3-VL-8B-Instruct
NAME=vl
PORT=8000
GPU_IDS=0,1
TP=2
MAX_MODEL_LEN=32768
MAX_NEW_TOKENS=2048
GPU_MEMORY_UTILIZATION=0.9
LIMIT='{"image": 32, "video": 1}'
echo "  Max New Tokens: ${MAX_NEW_TOKENS}"

if [[ "$BACKEND" == "vllm" ]]; then
    # native
    CUDA_VISIBLE_DEVICES=${GPU_IDS} \
    vllm serve "${MODEL}" \
        --served-model-name "${NAME}" \
        --port ${PORT} \
        --dtype bfloat16 \
        --max-model-len ${MAX_MODEL_LEN} \
        --tensor-parallel-size ${TP} \
        --gpu-memory-utilization ${GPU_MEMORY_UTILIZATION} \
        --limit-mm-per-prompt "${LIMIT}" \
        --trust-remote-code \

elif [[ "$BACKEND" == "swift-vllm" ]]; then
    CUDA_VISIBLE_DEVICES=${GPU_IDS} \
    IMAGE_MAX_TOKEN_NUM=1024 \
    swift deploy \
        --model "${MODEL}" \
        --infer_backend vllm \
        --torch_dtype bfloat16 \
        --max_new_tokens ${MAX_NEW_TOKENS} \
        --vllm_max_model_len ${MAX_MODEL_LEN} \
        --vllm_gpu_memory_utilization ${GPU_MEMORY_UTILIZATION} \
        --port ${PORT} \
        --served_model_name ${NAME}
fi
