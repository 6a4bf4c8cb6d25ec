ENGINE=$1
PORT="${PORT:-9000}"
OUT="${OUT:-out}"
WINDOWS="${WINDOWS:-3}"
source env.sh
export HF_HUB_OFFLINE=1
mkdir -p "$OUT"
sleep 2

case "$ENGINE" in
  vllm)
    PY=/envs/serve/bin/python
    nohup "$PY" -m vllm.entrypoints.openai.api_server \
      --model Qwen/Qwen3-8B --port "$PORT" --host 127.0.0.1 \
      --max-model-len 16384 --gpu-memory-utilization 0.45 \
      --max-num-batched-tokens 8192 --dtype bfloat16 \
      --no-enable-prefix-caching > "$OUT/server.log" 2>&1 &
    ;;
  sglang)
    PY=/envs/sgl/bin/python
    nohup "$PY" -m sglang.launch_server --model-path Qwen/Qwen3-8B \
      --port "$PORT" --host 127.0.0.1 --context-length 16384 \
      --mem-fraction-static 0.45 --page-size 16 --chunked-prefill-size 8192 \
      --enable-metrics --disable-radix-cache > "$OUT/server.log" 2>&1 &
    ;;
  *)
    echo "unknown $ENGINE"; exit 2 ;;
esac
SERVER_PID=$!
echo "$SERVER_PID" > "$OUT/server.pid"
