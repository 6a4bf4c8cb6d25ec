#!/bin/bash
#SBATCH --nodes=4
#SBATCH --gpus-per-node=4
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=4
NNODES=$SLURM_NNODES
EXIT_AFTER_MINS=230
ENABLE_DUO=1

MODEL_ARGS="\
    --num-layers 32 \
    --hidden-size 4096 \
    --num-attention-heads 32 \
    --group-query-attention --num-query-groups 8 \
    --seq-length 4096 \
    --max-position-embeddings 4096 \
    --use-mcore-models \
    --tokenizer-type GPT2BPETokenizer --vocab-file v.json --merge-file m.txt \
"
TRAINING_ARGS="\
    --micro-batch-size 2 \
    --global-batch-size 128 \
    --train-iters 100000 \
    --bf16 \
    --tensor-model-parallel-size 2 \
    --pipeline-model-parallel-size 2 \
    --use-distributed-optimizer \
    --overlap-grad-reduce \
"
OPTIMIZER_ARGS="--lr 1e-4 --min-lr 1e-5 --lr-decay-style cosine --lr-warmup-iters 200 --clip-grad 1.0"
DATA_ARGS="\
    --data-path $DATA_PATH \
    --split 949,50,1 \
    --distributed-timeout-minutes 60 \
"
OUTPUT_ARGS="\
    --log-interval 100 \
    --save-interval 1000 \
    --eval-interval 100 \
    --eval-iters 10 \
    --log-throughput \
"
OTHER_ARGS=""
if [ "$ENABLE_DUO" -eq 1 ]; then
    OTHER_ARGS+="--overlap-param-gather "
fi

echo "
torchrun $DISTRIBUTED_ARGS pretrain_gpt.py \
    $MODEL_ARGS \
    $TRAINING_ARGS \
    $OPTIMIZER_ARGS \
    $DATA_ARGS
"
DISTRIBUTED_ARGS="--nproc_per_node $GPUS_PER_NODE --nnodes $NNODES --rdzv_backend c10d --rdzv_endpoint $MASTER_ADDR:$MASTER_PORT"

torchrun $DISTRIBUTED_ARGS pretrain_gpt.py \
    $MODEL_ARGS \
    $TRAINING_ARGS \
    $OPTIMIZER_ARGS \
    $DATA_ARGS \
    $OUTPUT_ARGS \
    $OTHER_ARGS \
    --save $CHECKPOINT_PATH \
    --load $CHECKPOINT_PATH \
    --distributed-backend nccl \
    --exit-duration-in-mins $EXIT_AFTER_MINS
