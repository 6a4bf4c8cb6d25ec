#!/bin/bash
BS=256
MBS=2
deepspeed --num_gpus 4 --module openrlhf.cli.train_rm --save_path rm --save_steps -1 --logging_steps 1 \
  --train_batch_size $BS --micro_train_batch_size $MBS --pretrain meta-llama/Llama-3.1-8B-Instruct --bf16 \
  --max_epochs 1 --max_len 8192 --zero_stage 2 --learning_rate 9e-6 --dataset OpenRLHF/preference_700K \
  --apply_chat_template --chosen_key chosen --rejected_key rejected
