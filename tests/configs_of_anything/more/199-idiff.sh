MODEL_FLAGS="--image_size 96 --num_channels 192 --num_res_blocks 3 --learn_sigma True --use_checkpoint True"
DIFFUSION_FLAGS="--diffusion_steps 4000 --noise_schedule cosine"
TRAIN_FLAGS="--lr 1e-4 --batch_size 64 --microbatch 16 --use_fp16 True"
mpiexec -n 4 python scripts/image_train.py --data_dir imgs $MODEL_FLAGS $DIFFUSION_FLAGS $TRAIN_FLAGS
