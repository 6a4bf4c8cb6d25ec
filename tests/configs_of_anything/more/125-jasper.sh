#!/bin/bash
: ${NUM_GPUS:=4}
: ${GRAD_ACCUMULATION:=2}
: ${AMP:=true}
: ${BS:=20}

[ "$AMP" == "true" ] && AMP_FLAG="--amp"

python -m torch.distributed.launch --nproc_per_node ${NUM_GPUS} ../train.py \
    --cuda \
    -o ./out \
    --batch-size $BS \
    --grad-accumulation $GRAD_ACCUMULATION \
    --epochs 40 \
    --lr 0.1 \
    $AMP_FLAG
