torchrun --nproc_per_node 8 train_dpo.py --pretrain a/b --plugin 3d --tp 2 --pp 2 --zero_stage 1 --batch_size 2 --max_length 2048 --lora_config lora.json
