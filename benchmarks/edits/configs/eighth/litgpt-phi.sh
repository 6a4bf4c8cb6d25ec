litgpt download microsoft/phi-2
litgpt finetune_lora microsoft/phi-2 \
--data JSON \
--data.val_split_fraction 0.1 \
--data.json_path train.json \
--train.epochs 3 \
--train.micro_batch_size 8 \
--train.global_batch_size 16 \
--train.max_seq_length 2048 \
--train.log_interval 100
litgpt merge_lora out/finetune/lora/final
