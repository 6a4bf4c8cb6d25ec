torchrun --nproc-per-node 8 xtuner/v1/train/cli/sft.py --load-from Qwen/Qwen3-8B --chat_template qwen3 --dataset a.jsonl \
  --fsdp-config.cpu-offload --fsdp-config.recompute-ratio 0 --pack-max-length 8192 --global-batch-size 16 --optim Muon --total-step 100
