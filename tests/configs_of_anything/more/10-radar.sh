GPU_IDS=0
BATCH_SIZE_PER_GPU=10
TRAIN_WORKERS_PER_GPU=7
EVAL_WORKERS_PER_GPU=2
python train.py model=rnndet dataset=gen1 dataset.path=${DATA_DIR} wandb.project_name=radar \
  +experiment/gen1="base.yaml" hardware.gpus=${GPU_IDS} \
  batch_size.train=${BATCH_SIZE_PER_GPU} batch_size.eval=5 \
  hardware.num_workers.train=${TRAIN_WORKERS_PER_GPU} hardware.num_workers.eval=${EVAL_WORKERS_PER_GPU} \
  training.precision=16 training.learning_rate=2e-4 training.max_epochs=9
