uv run scripts/train.py pi0_libero_low_mem_finetune --exp-name=my --overwrite --batch-size 16
