torchrun --nproc_per_node 4 -m FlagEmbedding.finetune.reranker.decoder_only.base \
  --model_name_or_path google/gemma-2b --train_data ./triples --train_group_size 16 \
  --query_max_len 512 --passage_max_len 512 --output_dir ./reranker --learning_rate 2e-4 --bf16 \
  --per_device_train_batch_size 1 --gradient_accumulation_steps 16 --lora_rank 32 --lora_alpha 64 --use_flash_attn True
