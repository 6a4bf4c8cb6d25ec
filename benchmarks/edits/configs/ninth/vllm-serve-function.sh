GEN_MODEL="Qwen/Qwen3-14B"
JUDGE="Qwen/Qwen2.5-VL-72B-Instruct"
TAG=main60
mkdir -p logs
serve(){ local port=$1 gpus=$2 model=$3; shift 3
  setsid env CUDA_VISIBLE_DEVICES=$gpus HF_HOME=$HF_HOME \
    vllm serve "$model" --port $port --gpu-memory-utilization 0.92 "$@" \
    > "logs/${TAG}_${port}.log" 2>&1 < /dev/null & }

serve 8000 0 "$GEN_MODEL"    --max-model-len 32768
sleep 20
serve 8001 1 "$GEN_MODEL"    --max-model-len 32768
serve 8002 2,3,4,5 "$JUDGE" --tensor-parallel-size 4 --max-model-len 16384
python run_generate.py --rounds 8
