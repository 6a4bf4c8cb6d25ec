scene_path=data/replica
python main_nerf.py $scene_path \
--workspace outputs/out --fp16 --tcnn --preload --cuda_ray \
--iters 30000 --save_iter 5000 --min_near 0. \
--num_rays 3072 --lr 1e-2 \
--warmup_iter 50000 --patch_size 2
