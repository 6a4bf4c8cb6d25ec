set -e
MODEL_PATH=${MODEL_PATH:-Qwen/Qwen3-32B}
HOST=${HOST:-0.0.0.0}
PORT=${PORT:-8001}
MAX_MODEL_LEN=${MAX_MODEL_LEN:-32768}
GPU_UTIL=${GPU_UTIL:-0.92}
LOG_FILE=${LOG_FILE:-./logs/vllm.log}
export CUDA_VISIBLE_DEVICES=6,7
TENSOR_PARALLEL_SIZE=${TENSOR_PARALLEL_SIZE:-2}
export VLLM_WORKER_MULTIPROC_METHOD=spawn
MAX_NUM_SEQS=${MAX_NUM_SEQS:-64}  
MAX_NUM_BATCHED_TOKENS=${MAX_NUM_BATCHED_TOKENS:-8192}  
if [[ -z "${MODEL_PATH}" ]]; then
  echo "no MODEL_PATH" >&2
  exit 1
fi
echo "Starting ${MODEL_PATH}, max_num_seqs=${MAX_NUM_SEQS}..."
nohup python3 -m vllm.entrypoints.openai.api_server \
  --host ${HOST} \
  --port ${PORT} \
  --model ${MODEL_PATH} \
  --max-model-len ${MAX_MODEL_LEN} \
  --gpu-memory-utilization ${GPU_UTIL} \
  --dtype bfloat16 \
  --trust-remote-code \
  --tensor-parallel-size ${TENSOR_PARALLEL_SIZE} \
  --enable-prefix-caching \
  --max-num-seqs ${MAX_NUM_SEQS} \
  --max-num-batched-tokens ${MAX_NUM_BATCHED_TOKENS} > "${LOG_FILE}" 2>&1 &
SERVER_PID=$!
echo "PID=${SERVER_PID}"
