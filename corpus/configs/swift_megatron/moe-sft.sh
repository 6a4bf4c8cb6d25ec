PYTORCH_CUDA_ALLOC_CONF='expandable_segments:True' \
NPROC_PER_NODE=8 NNODES=2 \
megatron sft \
    --mcore_model Qwen3-30B-A3B-mcore \
    --model Qwen/Qwen3-30B-A3B \
    --dataset 'swift/Chinese-Qwen3-235B-2507-Distill-data-110k-SFT#20000' \
    --train_type full \
    --tensor_model_parallel_size 2 --sequence_parallel true \
    --pipeline_model_parallel_size 2 \
    --expert_model_parallel_size 4 \
    --moe_permute_fusion true --moe_grouped_gemm true --moe_aux_loss_coeff 1e-3 \
    --micro_batch_size 1 --global_batch_size 32 \
    --packing true \
    --recompute_granularity full --recompute_method uniform --recompute_num_layers 1 \
    --max_length 8192 \
    --torch_dtype bfloat16 \
    --num_workers 4 \
    --attention_backend flash \
    --cross_entropy_loss_fusion true \
    --optimizer_cpu_offload true --use_precision_aware_optimizer true --optimizer_offload_fraction 0.4
