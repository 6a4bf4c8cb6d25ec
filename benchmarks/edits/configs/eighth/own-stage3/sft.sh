#!/bin/bash
MASTER_ADDR=${MASTER_ADDR:-"127.0.0.1"}
MASTER_PORT=${MASTER_PORT:-$(shuf -i 20001-29999 -n 1)}
NNODES=${WORLD_SIZE:-1}
NPROC_PER_NODE=8

llm=Qwen/Qwen2.5-VL-7B-Instruct
lr=2e-7
batch_size=4
grad_accum_steps=4

args="
    --deepspeed ds/zero3.json \
    --model_name_or_path "${llm}" \
    --data_path d.json \
    --tune_vision False \
    --bf16 \
    --output_dir out \
    --num_train_epochs 0.5 \
    --per_device_train_batch_size ${batch_size} \
    --per_device_eval_batch_size $((batch_size*2)) \
    --gradient_accumulation_steps ${grad_accum_steps} \
    --max_pixels 50176 \
    --eval_strategy "no" \
    --save_strategy "steps" \
    --save_steps 1000 \
    --learning_rate ${lr} \
    --weight_decay 0 \
    --lr_scheduler_type "cosine" \
    --logging_steps 1 \
    --model_max_length 8192 \
    --gradient_checkpointing True \
    --dataloader_num_workers 4 \
    --report_to wandb"

torchrun --nproc_per_node=${NPROC_PER_NODE} \
         --nnodes=${NNODES} \
         --master_addr=${MASTER_ADDR} \
         --master_port=${MASTER_PORT} \
         train.py ${args}
