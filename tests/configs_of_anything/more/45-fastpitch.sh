#!/bin/bash
export OMP_NUM_THREADS=1

: ${NUM_GPUS:=4}
: ${BS:=28}
: ${GRAD_ACCUMULATION:=2}
: ${AMP:=true}
: ${EPOCHS:=1500}

[ "$AMP" == "true" ] && AMP_FLAG="--amp"

python -m torch.distributed.launch --nproc_per_node ${NUM_GPUS} train.py \
    -o output \
    --batch-size $BS \
    --grad-accumulation $GRAD_ACCUMULATION \
    --optimizer lamb \
    --epochs $EPOCHS \
    $AMP_FLAG
