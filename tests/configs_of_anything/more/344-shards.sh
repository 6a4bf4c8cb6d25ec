torchrun --nproc_per_node=4 trainer.py --mode=fsdp --model=TINYXL --batch_size=6 --vocab_size=32000 --block_size=384 --dtype=fp16 --activation=offload
