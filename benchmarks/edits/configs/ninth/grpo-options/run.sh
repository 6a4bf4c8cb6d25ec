CUDA_VISIBLE_DEVICES=0 python train.py --train-batch-size 16 --num-generations 8 \
  --max-steps 500
