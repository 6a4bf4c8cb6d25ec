#!/bin/bash
MODEL_ID=qwen2-vl-7b
LOCAL=./weights/qwen2-vl-7b
TRAIN=./data/train.json
IMAGES=./data/images
VIDEOS=./data/videos
FPS=2

TRAIN_VISION_ENCODER=False
USE_VISION_LORA=False
TRAIN_VISION_PROJECTOR=False

USE_LORA=True                      # adapters
Q_LORA=False
LORA_R=8
LORA_ALPHA=8

RUN_ID=coin_2e

DS_STAGE=zero2
PER_DEVICE_BATCH_SIZE=1
GRAD_ACCUM=1
NUM_EPOCHS=2
LR=2e-4
MODEL_MAX_LEN=32768

DISTRIBUTED_ARGS="
    --nnodes=1
    --nproc_per_node 4
    --rdzv_backend c10d
    --rdzv_endpoint localhost:0
"

torchrun $DISTRIBUTED_ARGS train.py \
    --model_id $MODEL_ID \
    --model_local_path $LOCAL \
    --data_path $TRAIN \
    --image_folder $IMAGES \
    --video_folder $VIDEOS \
    --fps $FPS \
    --output_dir ./checkpoints/$RUN_ID \
    --report_to tensorboard \
    --run_name $RUN_ID \
    --deepspeed ./ds/${DS_STAGE}.json \
    --bf16 True \
    --num_train_epochs $NUM_EPOCHS \
    --per_device_train_batch_size $PER_DEVICE_BATCH_SIZE \
    --per_device_eval_batch_size $PER_DEVICE_BATCH_SIZE \
    --gradient_accumulation_steps $GRAD_ACCUM \
    --learning_rate ${LR} \
    --weight_decay 0. \
    --warmup_ratio 0.03 \
    --lr_scheduler_type "cosine" \
    --logging_steps 1 \
    --tf32 True \
    --model_max_length $MODEL_MAX_LEN \
    --gradient_checkpointing True \
    --dataloader_num_workers 4 \
    --train_vision_encoder $TRAIN_VISION_ENCODER \
    --use_vision_lora $USE_VISION_LORA \
    --train_vision_projector $TRAIN_VISION_PROJECTOR \
    --use_lora $USE_LORA \
    --q_lora $Q_LORA \
    --lora_r $LORA_R \
    --lora_alpha $LORA_ALPHA
