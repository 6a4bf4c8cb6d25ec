set -x
read -r -d '' training_commands <<EOF
openrlhf.cli.train_sft \
   --max_len 8192 \
   --dataset Open-Orca/OpenOrca \
   --train_batch_size 128 \
   --micro_train_batch_size 2 \
   --pretrain meta-llama/Meta-Llama-3-8B \
   --save_path ./ckpt \
   --zero_stage 2 \
   --bf16 \
   --learning_rate 5e-6
EOF
if [[ ${1} != "slurm" ]]; then
    deepspeed --module $training_commands
fi
