set -euo pipefail
MODEL=${MODEL:-nvidia/Kimi-K2.6-NVFP4}
TP=${TP:-8}
PORT=${PORT:-8888}
CONCURRENCIES=${CONCURRENCIES:-1,8,32}
MAX_MODEL_LEN=${MAX_MODEL_LEN:-131072}
RESULT_DIR=${RESULT_DIR:-results}
if [[ -z "${MAX_NUM_SEQS:-}" ]]; then
    MAX_NUM_SEQS=$(echo "$CONCURRENCIES" | tr ',' '\n' | sort -n | tail -1)
fi
nvidia-smi || true
SERVER_LOG="$RESULT_DIR/server.log"
export VLLM_ENGINE_READY_TIMEOUT_S=3600

vllm serve "$MODEL" \
    --host 0.0.0.0 \
    --port "$PORT" \
    --trust-remote-code \
    --tensor-parallel-size "$TP" \
    --data-parallel-size 1 \
    --gpu-memory-utilization 0.90 \
    --kv-cache-dtype fp8 \
    --reasoning-parser kimi_k2 \
    --max-cudagraph-capture-size 2048 \
    --stream-interval 20 \
    --enable-prefix-caching \
    --max-model-len "$MAX_MODEL_LEN" \
    --max-num-seqs "$MAX_NUM_SEQS" > "$SERVER_LOG" 2>&1 &
SERVER_PID=$!
echo "Server PID: $SERVER_PID"
