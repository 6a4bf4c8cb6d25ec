python main_moco.py -a resnet50 --lr 0.03 --batch-size 256 -j 24 --moco-k 65536 --dist-url 'tcp://localhost:10001' --multiprocessing-distributed --world-size 1 --rank 0 /data/imagenet
