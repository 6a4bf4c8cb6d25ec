export CUDA_DEVICE_MAX_CONNECTIONS=1
SEQ_LENGTH=8192
DISTRIBUTED_BACKEND=nccl

export NPROC_PER_NODE=2
export NNODES=1
export NODE_RANK=0
export MASTER_ADDR=127.0.0.1
export MASTER_PORT=34567

ROOT=/srv/speech
CODE=${ROOT}/code
OUT=${ROOT}/out/$(date +%s)/
mkdir -p ${OUT}
cp $0 ${OUT}

LOG=${OUT}/log.txt
exec &> >(tee -a "$LOG")
echo ${@}

DATA=${CODE}/configs/collect.yaml
BASE=${CODE}/models/boost/
VOICE=${CODE}/models/voice-tokenizer

DISTRIBUTED_ARGS="
    --nproc_per_node $NPROC_PER_NODE
    --nnodes $NNODES
    --node_rank $NODE_RANK
    --master_addr $MASTER_ADDR
    --master_port $MASTER_PORT
"

torchrun $DISTRIBUTED_ARGS tools/finetune_speech.py --log_level "info" --do_train --overwrite_output_dir --config_name ${BASE} --tokenizer_name $BASE --model_name_or_path $BASE --audio_tokenizer_path $VOICE --audio_tokenizer_type "glm4voice" --dataset_name $DATA --bf16 True --tf32 True --torch_dtype bfloat16 --output_dir $OUT --num_train_epochs 1 --max_steps 2000 --per_device_train_batch_size 1 --per_device_eval_batch_size 1 --gradient_accumulation_steps 32 --save_strategy "steps" --save_steps 500 --learning_rate 2e-5 --lr_scheduler_type "cosine" --logging_steps 10 --model_max_length ${SEQ_LENGTH} --gradient_checkpointing True --deepspeed ${CODE}/ds/zero3_offload.json --trust_remote_code False --ddp_timeout 7200 --ddp_backend ${DISTRIBUTED_BACKEND}
