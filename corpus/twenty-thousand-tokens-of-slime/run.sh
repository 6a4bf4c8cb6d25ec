python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 --colocate \
 --hf-checkpoint Qwen/Qwen3-30B-A3B --num-rollout 100 --rollout-batch-size 16 --n-samples-per-prompt 8 --rollout-max-response-len 8192 \
 --global-batch-size 128 --tensor-model-parallel-size 4 --sequence-parallel --pipeline-model-parallel-size 1 --context-parallel-size 1 \
 --expert-model-parallel-size 8 --expert-tensor-parallel-size 1 --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 \
 --use-dynamic-batch-size --max-tokens-per-gpu 20480 --advantage-estimator grpo --use-kl-loss --optimizer adam \
 --rollout-num-gpus-per-engine 8 --sglang-mem-fraction-static 0.7
