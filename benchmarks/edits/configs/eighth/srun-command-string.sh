#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gres=gpu:4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=32

COMMAND="-m torchtitan.train --job.config_file train_configs/llama3_8b.toml --training.local_batch_size 2 --training.seq_len 8192"

sleep 1
export CUDA_VISIBLE_DEVICES="0, 1, 2, 3"
export NCCL_SOCKET_IFNAME=ib0
MASTER_ADDR="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)"
MASTER_ADDR="${MASTER_ADDR}i"
export MASTER_PORT=9469
export GPUS_PER_NODE=4

srun bash -c "torchrun \
--nnodes=$SLURM_NNODES \
--rdzv_backend c10d --nproc_per_node=4 --rdzv_id $RANDOM --rdzv_endpoint=$MASTER_ADDR:$MASTER_PORT --rdzv_conf=is_host=\$(if ((SLURM_NODEID)); then echo 0; else echo 1; fi) \
$COMMAND"
