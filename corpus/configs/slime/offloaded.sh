python3 train.py --colocate --no-offload-train --actor-num-gpus-per-node 4 --hf-checkpoint Qwen/Qwen3-8B --rollout-batch-size 16 \
   --rollout-max-response-len 2048 --sglang-mem-fraction-static 0.6 --sglang-chunked-prefill-size 4096 --fp16
