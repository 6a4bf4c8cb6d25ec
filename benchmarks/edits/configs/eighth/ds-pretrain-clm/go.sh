output_model=out
if [ ! -d ${output_model} ];then
    mkdir ${output_model}
fi
cp ./go.sh ${output_model}
cp ./ds_config_zero*.json ${output_model}
export CUDA_HOME=/usr/local/cuda/
export NCCL_P2P_DISABLE=1

deepspeed --include localhost:0,1 pretrain_clm.py \
    --config_name  tok/config.json \
    --tokenizer_name tok \
    --train_files data/train.txt \
    --validation_files  data/dev.txt \
    --per_device_train_batch_size 8 \
    --per_device_eval_batch_size 8 \
    --do_train \
    --output_dir ${output_model} \
    --evaluation_strategy  steps \
    --use_fast_tokenizer false \
    --max_eval_samples 500 \
    --learning_rate 1e-4 \
    --gradient_accumulation_steps 2 \
    --num_train_epochs 3 \
    --warmup_steps 5000 \
    --logging_steps 5 \
    --save_steps 10 \
    --eval_steps 5000000 \
    --seed 42 \
    --ddp_find_unused_parameters false \
    --block_size 1024 \
    --overwrite_output_dir \
    --report_to tensorboard \
    --ddp_timeout 18000000 \
    --bf16 \
    --torch_dtype bfloat16 \
    --deepspeed ds_config_zero2.json \
    --ignore_data_skip true \
    --gradient_checkpointing
