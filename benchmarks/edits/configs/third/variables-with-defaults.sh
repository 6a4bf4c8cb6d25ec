: "${BS:=16}"
: "${LEN:=8192}"
NPROC=${NPROC:-8}
torchrun --nproc_per_node $NPROC -m swift.cli.sft --model Qwen/Qwen2.5-7B --train_type full --dataset d --per_device_train_batch_size "$BS" --max_length $LEN --gradient_accumulation_steps ${ACC:-2} --deepspeed zero2
