#!/bin/bash
MODEL_NAME=""
HOST="0.0.0.0"
PORT=8000
GPU_MEMORY_UTILIZATION=0.9
TENSOR_PARALLEL_SIZE=1
MAX_MODEL_LEN="32768"
DTYPE="auto"
TRUST_REMOTE_CODE=""
QUANTIZATION=""

show_help() { echo "usage"; }

while [[ $# -gt 0 ]]; do
    case $1 in
        --model)
            MODEL_NAME="$2"
            shift 2
            ;;
        --gpu-memory-utilization)
            GPU_MEMORY_UTILIZATION="$2"
            shift 2
            ;;
        --tensor-parallel-size)
            TENSOR_PARALLEL_SIZE="$2"
            shift 2
            ;;
        --max-model-len)
            MAX_MODEL_LEN="$2"
            shift 2
            ;;
        --trust-remote-code)
            TRUST_REMOTE_CODE="--trust-remote-code"
            shift
            ;;
        --help)
            show_help
            exit 0
            ;;
        *)
            echo "what: $1"
            exit 1
            ;;
    esac
done

if [ -z "$MODEL_NAME" ]; then
    MODEL_NAME=Qwen/Qwen2.5-14B-Instruct
fi

CMD="python -m vllm.entrypoints.openai.api_server \
    --model ${MODEL_NAME} \
    --host ${HOST} \
    --port ${PORT} \
    --gpu-memory-utilization ${GPU_MEMORY_UTILIZATION} \
    --tensor-parallel-size ${TENSOR_PARALLEL_SIZE} \
    --dtype ${DTYPE}"

if [ -n "$MAX_MODEL_LEN" ]; then
    CMD="${CMD} --max-model-len ${MAX_MODEL_LEN}"
fi

if [ -n "$TRUST_REMOTE_CODE" ]; then
    CMD="${CMD} ${TRUST_REMOTE_CODE}"
fi

if [ -n "$QUANTIZATION" ]; then
    CMD="${CMD} --quantization ${QUANTIZATION}"
fi

echo "${CMD}"

eval ${CMD}
