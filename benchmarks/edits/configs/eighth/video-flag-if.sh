#!/bin/bash
conda activate stream

ngpus=8
pixels=4*224*224
max_pixels=$((${pixels}))
max_frames=240

DO_TRAIN=1
DO_EVAL=1

DISTRIBUTED_ARGS="
    --nproc_per_node ${ngpus} \
    --nnodes 1 \
    --node_rank 0 \
    --master_addr localhost \
    --master_port 6002
"
OUT=output/sft_lora_qwen2vl
mkdir -p "$OUT"

export NCCL_DEBUG=WARN
if [ $DO_TRAIN -eq 1 ]; then
    echo "tuning, to ${OUT}"
    torchrun $DISTRIBUTED_ARGS finetune_flash.py \
        --model_name_or_path ./ckpt/Qwen2-VL-7B-Instruct \
        --data_path ./data/train.json \
        --video_path ./data/frames \
        --use_flash_attn True \
        --bf16 True \
        --output_dir ${OUT} \
        --num_train_epochs 1 \
        --per_device_train_batch_size 1 \
        --per_device_eval_batch_size 1 \
        --gradient_accumulation_steps 8 \
        --evaluation_strategy "no" \
        --save_strategy "steps" \
        --save_steps 10 \
        --learning_rate 8e-4 \
        --weight_decay 0.1 \
        --lr_scheduler_type "cosine" \
        --logging_steps 1 \
        --report_to "tensorboard" \
        --model_max_length 14000 \
        --max_frames ${max_frames} \
        --max_pixels ${max_pixels} \
        --lazy_preprocess True \
        --use_lora \
        --lora_r 64 \
        --lora_alpha 32 \
        --gradient_checkpointing \
        --deepspeed ds/zero2.json
fi
if [ $DO_EVAL -eq 1 ]; then
    python eval_flash.py --model $OUT --batch_size 4
fi
