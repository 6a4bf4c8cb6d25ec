config_file=config/SiT_XL_patch2.json
batch_size=24 # per gpu
num_workers=7

USE_AMP=True
recompute=True
enable_xformers=True

python -u -m paddle.distributed.launch --gpus "0,1,2,3" train_sit.py \
    --feature_path ./data/imagenet256 \
    --batch_size_per_gpu ${batch_size} \
    --accum 2 \
    --lr 1e-4 \
    --max_steps 700000 \
    --num_workers ${num_workers} \
    --vae_name_or_path stabilityai/sd-vae-ft-mse \
    --config_file ${config_file} \
    --recompute ${recompute} \
    --enable_xformers_memory_efficient_attention ${enable_xformers} \
    --amp ${USE_AMP}
