python train.py --batch-size 32 --lr 2e-5
