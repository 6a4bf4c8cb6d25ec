GPU_ID=0
TAG=base
LENGTH=64
BATCH_SIZE=32
LR=6.25e-5
ACCUM=4

CUDA_VISIBLE_DEVICES=${GPU_ID} python train_through_trainer.py \
    --train_data_path data/train.txt \
    --max_length ${LENGTH} \
    --batch_size ${BATCH_SIZE} \
    --eval_batch_size ${BATCH_SIZE} \
    --gradient_accumulation ${ACCUM} \
    --num_epochs 8 \
    --save_steps 237 \
    --learning_rate ${LR} \
    --tag ${TAG}
