export HF_HOME="/cache/huggingface"
export CUDA_VISIBLE_DEVICES=4,5,6,7

MODEL_NAME="Qwen/Qwen3-4B-Thinking-2507"
TENSOR_PARALLEL_SIZE=4
GPU_MEMORY_UTILIZATION=0.9
MAX_MODEL_LEN=131072 # long enough
HOST="localhost"
PORT=8000

declare -A datasets
datasets=(
    ["agentica-org/DeepScaleR-Preview-Dataset"]=1
    # ["gpqa"]=2
)

echo "serving $MODEL_NAME"
vllm serve "$MODEL_NAME" \
    --tensor-parallel-size $TENSOR_PARALLEL_SIZE \
    --gpu-memory-utilization $GPU_MEMORY_UTILIZATION \
    --max-model-len $MAX_MODEL_LEN \
    --reasoning-parser qwen3 \
    --host "$HOST" \
    --port $PORT &

SERVER_PID=$!

function cleanup {
    kill $SERVER_PID
    wait $SERVER_PID 2>/dev/null
}
trap cleanup EXIT
for d in "${!datasets[@]}"; do
    python roll.py --dataset "$d" --n ${datasets[$d]} --max_tokens 32768
done
