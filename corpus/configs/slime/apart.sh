python3 train.py --actor-num-nodes 2 --actor-num-gpus-per-node 8 --rollout-num-gpus 8 --rollout-num-gpus-per-engine 4 --hf-checkpoint Qwen/Qwen3-30B-A3B \
   --tensor-model-parallel-size 4 --expert-model-parallel-size 8 --micro-batch-size 2 --global-batch-size 128 --rollout-batch-size 16 --n-samples-per-prompt 8 \
   --rollout-max-response-len 4096 --advantage-estimator gspo --optimizer-cpu-offload
