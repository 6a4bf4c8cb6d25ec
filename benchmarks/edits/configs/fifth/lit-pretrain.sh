litgpt pretrain EleutherAI/pythia-1.4b --tokenizer_dir checkpoints/EleutherAI/pythia-1.4b --data TextFiles \
  --data.train_data_path data --train.max_tokens 10000000 --train.micro_batch_size 16 --train.global_batch_size 512 \
  --devices 8 --precision bf16-mixed
