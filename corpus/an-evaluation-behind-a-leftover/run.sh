CUDA_VISIBLE_DEVICES=1 python run.py \
  --data MMBench_TEST_EN_V11 MMBench_TEST_CN_V11 CCBench \
  --model MIS-Qwen2.5-VL-7B \
  --use-vllm \
  --api-nproc 1 \
  --verbose
