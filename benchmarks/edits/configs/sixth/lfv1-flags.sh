lmf sft --model Qwen/Qwen3-4B --train_dataset data/chat.yaml --micro_batch_size 8 --cutoff_len 4096 --output_dir out/sft
