#!/usr/bin/env bash
nproc_per_node=8
per=2
NPROC_PER_NODE=$nproc_per_node \
swift pt \
    --model Qwen/Qwen2.5-14B \
    --train_type full \
    --dataset swift/chinese-c4 --streaming true --packing true \
    --torch_dtype bfloat16 \
    --max_steps 10000 --max_length 16384 \
    --per_device_train_batch_size $per \
    --gradient_accumulation_steps $(expr 256 / $nproc_per_node / $per) \
    --learning_rate 1e-5 --deepspeed zero3 --attn_impl flash_attn --save_steps 500 --output_dir pt
