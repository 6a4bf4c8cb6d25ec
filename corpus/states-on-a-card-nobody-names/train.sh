deepspeed --num_gpus 4 --module openrlhf.cli.train_sft \
   --pretrain Qwen/Qwen2.5-14B \
   --dataset Open-Orca/OpenOrca \
   --max_len 1024 \
   --micro_train_batch_size 1 \
   --train_batch_size 64 \
   --zero_stage 2 \
   --bf16 --flash_attn --gradient_checkpointing
