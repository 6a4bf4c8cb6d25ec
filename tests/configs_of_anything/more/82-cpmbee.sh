#! /bin/bash
GPUS_PER_NODE=4
OPTS=""
OPTS+=" --use-delta"
OPTS+=" --model-config config/cpm-bee-10b.json"
OPTS+=" --dataset bin_data/train"
OPTS+=" --epoch 100"
OPTS+=" --batch-size 5"
OPTS+=" --train-iters 100"
OPTS+=" --save results/"
OPTS+=" --lr 0.0001"
OPTS+=" --inspect-iters 100"
OPTS+=" --max-length 768"
torchrun --nnodes=1 --nproc_per_node=$GPUS_PER_NODE finetune_cpm_bee.py ${OPTS}
