tune run --nnodes 1 --nproc_per_node 4 full_finetune_distributed --config 8b.yaml batch_size=2 tokenizer.max_seq_len=4096
