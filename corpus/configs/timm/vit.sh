./distributed_train.sh 4 /data/imagenet --model vit_base_patch16_224 -b 256 --sched cosine --epochs 300 --opt adamw --amp --drop-path 0.1 --model-ema --reprob 0.25 --img-size 224 --workers 8
