torchrun --nproc_per_node 8 \
  -m FlagEmbedding.finetune.embedder.encoder_only.m3 \
  --model_name_or_path BAAI/bge-m3 --cache_dir ./cache \
  --train_data ./pairs --train_group_size 16 --query_max_len 512 --passage_max_len 8192 \
  --knowledge_distillation True --output_dir ./m3 --overwrite_output_dir \
  --learning_rate 1e-5 --fp16 --num_train_epochs 2 --per_device_train_batch_size 4 --dataloader_drop_last True \
  --warmup_ratio 0.1 --deepspeed ds_stage0.json --logging_steps 1 --save_steps 1000 --negatives_cross_device \
  --temperature 0.02 --sentence_pooling_method cls --normalize_embeddings True --unified_finetuning True
