torchrun --nproc_per_node 4 -m FlagEmbedding.finetune.embedder.encoder_only.base \
  --model_name_or_path BAAI/bge-large-en-v1.5 --train_data ./retrieval --train_group_size 8 \
  --query_max_len 64 --passage_max_len 512 --output_dir ./bge-large-ours --learning_rate 1e-5 --fp16 \
  --num_train_epochs 2 --per_device_train_batch_size 16 --negatives_cross_device --temperature 0.02
