torchrun --nnodes 2 --nproc_per_node 8 longclips/train.py \
    --pretrained_model_name_or_path data/clipper \
    --validation_prompt_dir data/prompts \
    --gradient_checkpointing \
    --train_batch_size=3 \
    --num_latent_t 12 \
    --sp_size 2 \
    --dataloader_num_workers 5
