python train.py --outdir=runs --cfg=stylegan3-r --data=/data/ffhq-1024.zip --gpus=8 --batch=32 --gamma=32 --batch-gpu=4 --snap=20 --workers=3
