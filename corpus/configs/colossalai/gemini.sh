colossalai run --nproc_per_node 4 train_sft.py --pretrain Qwen/Qwen2.5-7B --plugin gemini --batch_size 1 --accumulation_steps 8 --max_len 8192
