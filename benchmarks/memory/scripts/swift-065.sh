CUDA_VISIBLE_DEVICES=0 swift sft \
    --model Qwen/Qwen2.5-3B \
    --tuner_type full \
    --torch_dtype bfloat16 \
    --per_device_train_batch_size 1 \
    --gradient_accumulation_steps 8 \
    --max_length 8192 \
    --packing true \
    --use_liger_kernel true \
    --attn_impl flash_attn
