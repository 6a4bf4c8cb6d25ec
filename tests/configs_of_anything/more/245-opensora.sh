torchrun --nproc_per_node 8 scripts/train.py configs/x.py --dtype bf16 --batch-size 2 --num-frames 51 --resolution 480p --grad-ckpt True --data-path d.csv
