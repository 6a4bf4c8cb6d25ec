mkdir -p /root/hub
cd /root/hub
git clone https://github.com/NVIDIA/Megatron-LM.git Megatron-LM --branch core_r0.13.0

cd /root/
export DATASET="zai-org/LongAlign-10k"
export MODEL_ID="Qwen/Qwen3-30B-A3B-Instruct-2507"

export MCORE="Converted/mcore"
swift export \
    --model $MODEL_ID \
    --to_mcore true \
    --torch_dtype bfloat16 \
    --use_hf \
    --output_dir $MCORE

echo "converted"

PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True NPROC_PER_NODE=8 NNODES=$BT_GROUP_SIZE NODE_RANK=$BT_NODE_RANK MASTER_ADDR=$BT_LEADER_ADDR megatron sft \
    --load $MCORE \
    --dataset $DATASET \
    --no_initialization false \
    --split_dataset_ratio 0.01 \
    --tensor_model_parallel_size 2 \
    --pipeline_model_parallel_size 2 \
    --expert_model_parallel_size 2 \
    --moe_permute_fusion true \
    --moe_grouped_gemm true \
    --micro_batch_size 1 \
    --global_batch_size 8 \
    --packing true \
    --recompute_granularity full \
    --recompute_method uniform \
    --recompute_num_layers 4 \
    --train_iters 200 \
    --eval_iters 40 \
    --finetune true \
    --lr 1e-5 \
    --save $BT_CHECKPOINT_DIR \
    --eval_interval 40 \
    --max_length 16000
