MODEL="${1:-Qwen/Qwen3-32B}"
HOST=0.0.0.0
PORT=8100
PP=1
TP=4
MAX_MODEL_LEN=40960
MAX_NUM_SEQS=128
MAX_NUM_BATCHED_TOKENS=8192
GPU_MEM=0.92
dry_run=0
export VLLM_USE_V1=1 PYTHONUNBUFFERED=1
VLLM_CMD=(
    vllm serve "$MODEL"
    --host "$HOST"
    --port "$PORT"
    --pipeline-parallel-size "$PP"
    --tensor-parallel-size "$TP"
    --max-model-len "$MAX_MODEL_LEN"
    --max-num-seqs "$MAX_NUM_SEQS"
    --max-num-batched-tokens "$MAX_NUM_BATCHED_TOKENS"
    --gpu-memory-utilization "$GPU_MEM"
    --trust-remote-code
)

if ((dry_run == 0)); then
    command -v vllm >/dev/null || { echo 'no vllm' >&2; exit 127; }
fi
"${VLLM_CMD[@]}" 2>&1 | tee serve.log
