set -xeuo pipefail

HERE=$(cd "$(dirname "$0")/../.." && pwd)
MODEL=${MODEL:-Qwen/Qwen3-30B-A3B}
TRAIN=${TRAIN:-${HERE}/data/train.jsonl}
OUT=${OUT:-${HERE}/checkpoints/mat}

PYTORCH_CUDA_ALLOC_CONF='expandable_segments:True' \
NPROC_PER_NODE=${NPROC_PER_NODE:-8} \
megatron sft \
    --model "${MODEL}" \
    --load_safetensors true \
    --save_safetensors true \
    --dataset "${TRAIN}" \
    --torch_dtype bfloat16 \
    --tensor_model_parallel_size 2 \
    --expert_model_parallel_size 8 \
    --sequence_parallel true \
    --moe_aux_loss_coeff 1e-3 \
    --moe_grouped_gemm true \
    --moe_permute_fusion true \
    --micro_batch_size 1 \
    --global_batch_size 16 \
    --packing true \
    --max_length 16384 \
    --recompute_granularity full \
    --recompute_method uniform \
    --recompute_num_layers 1 \
    --attention_backend flash \
    --cross_entropy_loss_fusion true \
    --optimizer adam \
    --lr 2e-5 \
    --min_lr 1e-6 \
    --save "${OUT}"
