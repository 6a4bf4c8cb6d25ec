#!/bin/bash
base=`pwd`
SEED=${SEED:-100}
NODE=${NODE:-0}
MASTER_PORT=${MASTER_PORT:-29500}
CONFIG=${CONFIG:-${base}/configs/student.json}
DS_CONFIG=${DS_CONFIG:-${base}/configs/ds_listops.json}
OUTPUT_DIR=${base}/out
: "${DISTILL_ALPHA:=0.6}"
JOB_NAME=distill_$(date +'%Y')
mkdir -p $OUTPUT_DIR

NCCL_TREE_THRESHOLD=0 deepspeed --include localhost:"$NODE" --master_port "$MASTER_PORT" ${base}/deepspeed_train.py \
--cf "$CONFIG" \
--max_seq_length 2000 \
--output_dir $OUTPUT_DIR \
--task_type "sequence_classification_distill" \
--deepspeed \
--dense_attention \
--seed "$SEED" \
--job_name $JOB_NAME \
--deepspeed_config "$DS_CONFIG" \
--eval_bs_ratio 2 \
--distill_alpha "$DISTILL_ALPHA" \
&> ${JOB_NAME}.log
