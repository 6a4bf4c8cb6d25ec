# srun -p X --gres=gpu:8 bash scripts/train.sh
source ~/.bashrc
conda activate imag
gcc --version
export PYTHONPATH=$PYTHONPATH:Dreamer
wandb disabled
export WANDB_DISABLED=true
deepspeed --include localhost:0,1,2,3,4,5,6,7 --master_addr 127.0.0.1 --master_port 28457 fastchat/train/MLLMSD_train.py \
   --model_name_or_path ckpt/vicuna-7b-v1.1 \
   --sd_qformer_version "v1.1-7b" \
   --bf16 True \
   --tf32 True \
   --output_dir out/m7 \
   --num_train_epochs 20 \
   --per_device_train_batch_size 4 \
   --per_device_eval_batch_size 4 \
   --gradient_accumulation_steps 4 \
   --evaluation_strategy 'no' \
   --save_strategy 'steps' \
   --save_steps 5000 \
   --learning_rate 1e-5 \
   --lr_scheduler_type 'cosine' \
   --weight_decay 0. \
   --logging_steps 1 \
   --model_max_length 2048 \
   --gradient_checkpointing True \
   --dataloader_num_workers 16 \
   --ddp_find_unused_parameters True \
   --unet_full True \
   --unet_ckpt out/unet/adapter_model.bin \
   --deepspeed ds/zero2.json
