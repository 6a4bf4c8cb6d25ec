NPROC_PER_NODE=4 CUDA_VISIBLE_DEVICES=0,1,2,3 MAX_PIXELS=1003520 \
swift sft --model Qwen/Qwen2.5-VL-7B-Instruct --train_type lora --lora_rank 16 --target_modules all-linear \
  --dataset AI-ModelScope/LaTeX_OCR --torch_dtype bfloat16 --max_length 8192 \
  --per_device_train_batch_size 4 --gradient_accumulation_steps 4 --eval_steps 100 --per_device_eval_batch_size 4 \
  --deepspeed zero2 --freeze_vit true --padding_free true --attn_impl flash_attn
