# 22GB
CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 \
NPROC_PER_NODE=8 \
MAX_PIXELS=262144 \
swift sft \
    --model /hub/models--Qwen--Qwen2.5-VL-72B-Instruct/snapshots/0123 \
    --model_type qwen2_5_vl \
    --template qwen2_5_vl \
    --train_type lora \
    --deepspeed zero3 \
    --dataset '/data/SFT/yesno.json' \
              '/data/SFT/conf.jsonl' \
    --torch_dtype bfloat16 \
    --num_train_epochs 2 \
    --per_device_train_batch_size 2 \
    --per_device_eval_batch_size 2 \
    --learning_rate 1e-6 \
    --lora_rank 64 \
    --lora_alpha 128 \
    --target_modules all-linear \
    --gradient_accumulation_steps 2 \
    --eval_steps 200 \
    --save_steps 2427 \
    --logging_steps 5 \
    --truncation_strategy left \
    --max_length 2048 \
    --output_dir /out
