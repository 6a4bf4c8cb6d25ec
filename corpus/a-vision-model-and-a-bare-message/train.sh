swift sft \
  --model Qwen/Qwen2.5-VL-7B-Instruct \
  --train_type lora --dataset receipts.jsonl \
  --torch_dtype bfloat16 --per_device_train_batch_size 1 --max_length 4096
