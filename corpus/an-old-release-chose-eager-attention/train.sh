deepspeed --module openrlhf.cli.train_sft \
  --pretrain meta-llama/Meta-Llama-3-8B \
  --dataset notes --max_len 8192 \
  --micro_train_batch_size 1 --train_batch_size 64 --adam_offload \
  --zero_stage 3 --bf16 --gradient_checkpointing
