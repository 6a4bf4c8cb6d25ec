NPROC_PER_NODE=4 CUDA_VISIBLE_DEVICES=0,1,2,3 swift sft \
    --model_type deepseek-vl-7b-chat \
    --dataset coco-mini-en-2 \
    --train_dataset_sample -1 \
    --sft_type full \
    --use_flash_attn true \
    --batch_size 2 \
    --gradient_accumulation_steps 8 \
    --max_length 4096 \
    --deepspeed default-zero2
