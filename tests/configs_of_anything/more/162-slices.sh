python3 train_slices.py --dataroot /data/slices --gpu_ids 0 --model backbone_ssim --norm batch --batchSize 2 \
    --loadSize 224 --fineSize 208 --niter 30 --niter_decay 10 --nThreads 14 --beta1 0.9 --no_flip --lr 0.0001
