PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True \
torchrun --standalone --nnodes 1 --nproc-per-node 2 scripts/finetune_arm.py \
  --vla_path "../weights/armvla-7b-warm" \
  --data_root_dir "/data/arm" \
  --run_root_dir checkpoints/arm \
  --lora_rank 48 \
  --batch_size 10 \
  --grad_accumulation_steps 2 \
  --learning_rate 5e-4
