composer -n 8 train/train.py train/yamls/pretrain/mpt-7b.yaml device_train_microbatch_size=2 max_seq_len=8192
