export CUDA_VISIBLE_DEVICES=2,3
nohup python -m vllm.entrypoints.openai.api_server --model Qwen/Qwen2.5-VL-72B-Instruct-AWQ --quantization awq_marlin \
 --tensor-parallel-size 2 --gpu-memory-utilization=0.95 --max-model-len=32768 --served-model-name vl > serve.out 2>&1 &
