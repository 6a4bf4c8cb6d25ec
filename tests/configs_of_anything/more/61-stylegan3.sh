python train.py --outdir=runs --cfg=stylegan3-t --data=data/faces-512.zip --gpus=8 --batch=64 --batch-gpu=4 --gamma=8.2 --mirror=1 --workers=5
