set -euo pipefail
VLLM_PORT="${VLLM_PORT:-5000}"
VLLM_MODEL="${VLLM_MODEL:-microsoft/Fara-7B}"
VLLM_IMAGE="${VLLM_IMAGE:-vllm/vllm-openai:latest}"
VLLM_DTYPE="${VLLM_DTYPE:-bfloat16}"
VLLM_MAX_MODEL_LEN="${VLLM_MAX_MODEL_LEN:-65536}"
VLLM_GPU_MEMORY_UTILIZATION="${VLLM_GPU_MEMORY_UTILIZATION:-0.9}"
sudo sh -c 'sync; echo 3 > /proc/sys/vm/drop_caches' 2>/dev/null || true

if [ -z "${HUGGINGFACE_TOKEN:-}" ]; then
    echo "no token"
fi

docker run -d \
    --name fara \
    --gpus all \
    --runtime nvidia \
    -p ${VLLM_PORT}:${VLLM_PORT} \
    -v "${ROOT}/models:/models" \
    -e HF_TOKEN="${HUGGINGFACE_TOKEN:-}" \
    -e NVIDIA_VISIBLE_DEVICES=all \
    -e CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES:-0}" \
    --restart unless-stopped \
    ${VLLM_IMAGE} \
    vllm serve "${VLLM_MODEL}" \
        --host 0.0.0.0 \
        --port ${VLLM_PORT} \
        --dtype ${VLLM_DTYPE} \
        --max-model-len ${VLLM_MAX_MODEL_LEN} \
        --gpu-memory-utilization ${VLLM_GPU_MEMORY_UTILIZATION} \
        --trust-remote-code

for i in {1..3}; do
    if curl -s "http://localhost:${VLLM_PORT}/health" > /dev/null 2>&1; then
        exit 0
    fi
    sleep 5
done
