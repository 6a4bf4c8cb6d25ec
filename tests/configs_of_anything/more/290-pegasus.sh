python train.py --learning_rate 1e-4 \
    --batch_size 16 \
    --epochs 10 \
    --warmup_ratio 0.1 \
    --weight_decay 1e-2 \
    --save_steps 10000
