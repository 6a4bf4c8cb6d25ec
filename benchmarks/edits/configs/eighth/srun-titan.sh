#!/bin/bash
#SBATCH --nodes=8
#SBATCH --gpus-per-node=8
set -ex
export PATH=/env/bin:$PATH
nodes=( $( scontrol show hostnames $SLURM_JOB_NODELIST ) )
head_node=${nodes[0]}
head_node_ip=$(srun --nodes=1 --ntasks=1 -w "$head_node" hostname --ip-address)

export NCCL_DEBUG=WARN
CONFIG_FILE=torchtitan/models/deepseek_v3/train_configs/k2.toml
mkdir -p outputs

srun bash -c "torchrun \
    --nproc_per_node=8 \
    --nnodes=$SLURM_NNODES \
    --node_rank=\$SLURM_NODEID \
    --rdzv_id=$SLURM_JOB_ID \
    --rdzv_backend=c10d \
    --rdzv_endpoint=$head_node_ip:29500 \
    -m torchtitan.train \
    --job.config_file $CONFIG_FILE --training.local_batch_size=4 --parallelism.tensor_parallel_degree=1"
