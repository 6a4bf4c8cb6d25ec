deepspeed --num_gpus `ls /dev/nvidia[0-9]* | wc -l` --module openrlhf.cli.train_rm --pretrain Qwen/Qwen2.5-3B --dataset my/pairs \
  --micro_train_batch_size 8 --train_batch_size 128 --max_len 4096 --zero_stage 2 --bf16 --save_path rm
