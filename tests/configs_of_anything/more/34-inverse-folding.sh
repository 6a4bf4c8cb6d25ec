python3 inverse_folding/finetune.py \
    --model=checkpoints/progen2-small \
    --train_file=/data/train.pkl \
    --test_file=/data/valid.pkl \
    --device=cuda \
    --epochs=20 \
    --batch_size=12 \
    --accumulation_steps=4 \
    --lr=1e-4 \
    --decay=cosine \
    --warmup_steps=200 \
    --eval_before_train \
    # --model_parallel
