#!/bin/bash
#SBATCH -N 4 --gpus-per-node=8 --ntasks-per-node=1
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
TP=4
PP=2
MBS=2
GBS=256
CKPT=${1:-/scratch/ckpt}
MODEL_ARGS="
    --num-layers 48 --hidden-size 6144 --num-attention-heads 48
    --group-query-attention --num-query-groups 8
    --seq-length 8192 --max-position-embeddings 8192
    --swiglu --normalization RMSNorm --disable-bias-linear --untie-embeddings-and-output-weights
    --position-embedding-type rope
"
TRAIN_ARGS="
    --micro-batch-size $MBS --global-batch-size $GBS --train-iters 100000
    --lr 1.5e-4 --min-lr 1e-5 --lr-decay-style cosine --bf16
    --use-distributed-optimizer --attention-backend flash
"
srun torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $SLURM_NNODES --rdzv_backend c10d --rdzv_endpoint $MASTER:29500 \
    pretrain_gpt.py $MODEL_ARGS $TRAIN_ARGS \
    --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP \
    --tokenizer-type HuggingFaceTokenizer --tokenizer-model /models/tok --mock-data \
    --save $CKPT --load $CKPT --eval-iters 10 --log-interval 1
