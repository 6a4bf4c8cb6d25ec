deepspeed --module openrlhf.cli.train_sft \
   --max_len 16384 --dataset Open-Orca/OpenOrca --input_key question --output_key response \
   --train_batch_size 256 --micro_train_batch_size 4 --pretrain meta-llama/Meta-Llama-3-8B \
   --save_path ./ckpt --zero_stage 2 --max_epochs 1 --learning_rate 5e-6 --bf16 --flash_attn
