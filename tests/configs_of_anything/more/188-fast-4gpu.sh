#!/bin/bash
set -a
: ${NUM_GPUS:=4}
: ${BATCH_SIZE:=24}
: ${GRAD_ACCUMULATION:=3}
: ${AMP:=true}
bash scripts/train.sh "$@"
