if [ -n "$MODEL_PATH" ]; then
   MODEL=$MODEL_PATH
else
   MODEL=/models/q
fi
echo "MODEL config is $MODEL"

kv_cache_dtype="auto"
gpu_usage=0.92
max_num_seqs=128
port=8000

if [ -n "$KV_CACHE_DTYPE" ]; then
   kv_cache_dtype=$KV_CACHE_DTYPE
fi

if [ -n "$ENABLE_CHUNKED_PREFILL" ]; then
    CHUNKED="--enable-chunked-prefill"
else
    CHUNKED=""
fi

if [ -n "$GPU_USAGE" ]; then
   gpu_usage=$GPU_USAGE
fi
echo "GPU_USAGE is $gpu_usage"

if [ -n "$MAX_NUM_SEQS" ]; then
   max_num_seqs=$MAX_NUM_SEQS
fi
#while true; do sleep 1s; done;
python3 -m vllm.entrypoints.openai.api_server --port ${port} --host 0.0.0.0 \
--gpu-memory-utilization ${gpu_usage} --tensor-parallel-size=2 --served-model-name m \
--model ${MODEL} --trust-remote-code --max-num-seqs=${max_num_seqs} --kv-cache-dtype ${kv_cache_dtype} $CHUNKED
