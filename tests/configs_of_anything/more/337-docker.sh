docker run --rm --gpus all --shm-size=16g -v $PWD:/work seg:latest \
  python tools/train_seg.py --arch unetpp --batch_size 20 --img_size 512 --n_workers 6 --max_epoch 80 --lr 1e-3
