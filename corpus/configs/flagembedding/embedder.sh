torchrun --nproc_per_node 2 -m FlagEmbedding.finetune.embedder.encoder_only.base \
  --model_name_or_path BAAI/bge-large-zh-v1.5 --train_data ./pairs --train_group_size 8 \
  --query_max_len 256 --passage_max_len 512 --output_dir ./bge-out --learning_rate 1e-5 --fp16 \
  --per_device_train_batch_size 16 --gradient_checkpointing --negatives_cross_device --temperature 0.02
