OMP_NUM_THREADS=1 python -m torch.distributed.run --nproc_per_node=8 main_pretrain.py --batch_size 72 --accum_iter 3 --model mae_vit_huge_patch14 \
    --input_size 336 --mask_ratio 0.75 --epochs 800 --warmup_epochs 40 --blr 1.5e-4 --weight_decay 0.05 --num_workers 9 --data_path /imagenet
