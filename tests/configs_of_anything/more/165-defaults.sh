#!/bin/bash

set -a

: ${NUM_GPUS:=4}
: ${GPU_BATCH_SIZE:=34}
: ${GRAD_ACCUMULATION:=3}

bash scripts/train.sh "$@"
