export CUDA_VISIBLE_DEVICES=0,1,2,3
deepspeed hydit/train_deepspeed.py \
    --task-flag "dit_g2_full" \
    --model DiT-g/2 \
    --training-parts all \
    --results-dir out \
    --batch-size 2 \
    --image-size 1024 \
    --global-seed 999 \
    --grad-accu-steps 3 \
    --lr 1e-4 \
    --use-flash-attn \
    --use-fp16 \
    --gradient-checkpointing \
    --num-workers 4
