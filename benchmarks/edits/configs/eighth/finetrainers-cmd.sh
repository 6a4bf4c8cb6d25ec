export WANDB_MODE="offline"
GPU_IDS="0,1"
DATA_ROOT="data/tiny"
OUTPUT_DIR="out/cog"

model_cmd="--model_name cogvideox --pretrained_model_name_or_path THUDM/CogVideoX-5b"
dataset_cmd="--data_root $DATA_ROOT \
  --video_column videos.txt \
  --caption_column prompts.txt \
  --video_resolution_buckets 49x480x720 \
  --caption_dropout_p 0.1"

dataloader_cmd="--dataloader_num_workers 4"

  # --precompute_conditions \
training_cmd="--training_type  full-finetune\
  --seed 42 \
  --batch_size 4 \
  --train_steps 10000 \
  --rank 128 \
  --lora_alpha 128 \
  --target_modules to_q to_k to_v to_out.0 \
  --gradient_accumulation_steps 1 \
  --gradient_checkpointing \
  --checkpointing_steps 500 \
  --resume_from_checkpoint=latest \
  --enable_slicing \
  --enable_tiling"

optimizer_cmd="--optimizer adamw \
  --use_8bit_bnb \
  --lr 3e-5 \
  --lr_scheduler constant_with_warmup \
  --max_grad_norm 1.0"

miscellaneous_cmd="--tracker_name finetrainers-cog \
  --output_dir $OUTPUT_DIR \
  --nccl_timeout 1800 \
  --report_to wandb"

# cmd="accelerate launch --config_file accelerate_configs/other.yaml --gpu_ids $GPU_IDS train.py \
cmd="accelerate launch --config_file accelerate_configs/ds.yaml  train.py \
  $model_cmd \
  $dataset_cmd \
  $dataloader_cmd \
  $training_cmd \
  $optimizer_cmd \
  $miscellaneous_cmd"

echo "Running command: $cmd"
eval $cmd
echo -ne "-- done --\n\n"
