NPROC_PER_NODE=4 xtuner train full.py --deepspeed deepspeed_zero3 --work-dir out
