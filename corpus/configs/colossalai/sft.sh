colossalai run --nproc_per_node 8 --hostfile hosts train_sft.py --pretrain meta-llama/Llama-2-7b-hf --dataset d --plugin zero2_cpu --batch_size 4 \
  --accumulation_steps 2 --max_len 4096 --use_flash_attn --grad_checkpoint --mixed_precision bf16
