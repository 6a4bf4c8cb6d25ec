python pytorch-image-models/train.py --data-dir /data/flowers --model convnext_small --batch-size 64 --grad-checkpointing --grad-accum-steps 2 --num-classes 102
