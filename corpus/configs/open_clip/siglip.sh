torchrun --nproc_per_node 4 -m open_clip_train.main --model ViT-B-16-SigLIP --siglip --batch-size 1024 --precision amp --workers 4 --train-data data.csv
