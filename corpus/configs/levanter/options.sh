python src/levanter/main/train_lm.py --config_path config/llama2_7b.yaml --trainer.per_device_parallelism 4 --trainer.train_batch_size 256 --model.seq_len 2048
