NUM_GPU_PER_NODE=2
BATCH_SIZE=96
MICRO_BATCH_SIZE=24
torchrun --nnodes=1 --nproc_per_node=$NUM_GPU_PER_NODE main.py pretrain --data_path exampledata/pretrain --batch_size $BATCH_SIZE --micro_batch_size $MICRO_BATCH_SIZE --dropout 0.1 --depth 6 --epochs 20 --init_lr 1e-4
