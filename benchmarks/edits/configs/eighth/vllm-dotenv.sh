#!/bin/bash
set -x
HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
if [ -f "$HERE/.env" ]; then
    set -a
    source "$HERE/.env"
    set +a
fi

step=321
name="vl7b_sft${step}"
LOG="serve_${name}_$(date +'%Y%m%d').log"
export CUDA_VISIBLE_DEVICES="0,1"

cd $HERE
source $ENV_DIR/bin/activate
vllm serve ${MODELS}/sft/vl-7b/checkpoint-${step} \
    --served-model-name ${name} \
    --port 9752 \
    --tensor-parallel-size ${TENSOR_PARALLEL_SIZE} \
    --gpu-memory-utilization ${GPU_MEMORY_UTIL} \
    --max_model_len ${MAX_MODEL_LEN} \
    --limit-mm-per-prompt image=10 \
    --disable-log-requests 2>&1 | tee -a ${LOG}



