export CUDA_DEVICE_MAX_CONNECTIONS=1
MOE=(--num-experts 8 --moe-router-topk 2 --expert-model-parallel-size 4)
torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py --use-mcore-models --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --group-query-attention --num-query-groups 8 \
 --seq-length 4096 --max-position-embeddings 32768 --micro-batch-size 1 --global-batch-size 256 --bf16 --tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 "${MOE[@]}" --transformer-impl transformer_engine
