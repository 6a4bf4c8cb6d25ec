torchrun --nproc_per_node 1 -m FlagEmbedding.baai_general_embedding.finetune.run \
  --output_dir ./bge-small --model_name_or_path BAAI/bge-small-en-v1.5 --train_data ./pairs.jsonl --learning_rate 1e-5 --fp16 \
  --per_device_train_batch_size 32 --dataloader_drop_last True --normlized True --temperature 0.02 \
  --query_max_len 64 --train_group_size 2 --use_inbatch_neg
