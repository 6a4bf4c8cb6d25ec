CUDA_VISIBLE_DEVICES=0,1 python train.py \
  --max_epochs 250 --warmup_ratio 0.04 \
  --batch_size 6 --max_len 240 \
  --num_workers 5 --lr 4e-4 \
  --default_root_dir logs --gpus 2 \
  --train_file data/train --valid_file data/valid
