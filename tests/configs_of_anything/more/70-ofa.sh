#!/usr/bin/env
GPUS_PER_NODE=4
batch_size=5
update_freq=4
patch_image_size=480
max_src_length=80
max_tgt_length=20
python3 -m torch.distributed.launch --nproc_per_node=${GPUS_PER_NODE} ../../train.py data.tsv \
    --arch=ofa_large \
    --criterion=adjust_label_smoothed_cross_entropy \
    --batch-size=${batch_size} \
    --update-freq=${update_freq} \
    --optimizer=adam --lr=1e-5 --max-epoch=5 \
    --max-src-length=${max_src_length} \
    --max-tgt-length=${max_tgt_length} \
    --patch-image-size=${patch_image_size} \
    --fp16 \
    --num-workers=0
