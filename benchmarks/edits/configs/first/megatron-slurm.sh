#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gpus-per-node=8
#SBATCH --ntasks-per-node=1
GPT_ARGS="--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 8192 --max-position-embeddings 8192 --micro-batch-size 2 --global-batch-size 256 --bf16"
PAR="--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2"
LAUNCHER="torchrun --nproc_per_node 8 --nnodes 2 --rdzv_backend c10d --rdzv_endpoint $HOSTNAME:29500"
CMD=" `pwd`/pretrain_gpt.py $GPT_ARGS $PAR --data-path /data/c4 --recompute-granularity selective"
srun --jobid $SLURM_JOBID bash -c "$LAUNCHER --node_rank \$SLURM_PROCID $CMD"
