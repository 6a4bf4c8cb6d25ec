#!/bin/bash
#SBATCH --nodes=2 --gres=gpu:8 --ntasks-per-node=1
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
srun bash -c "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 --tp 16 --nnodes 2 --node-rank \$SLURM_NODEID --dist-init-addr $head:20000 --trust-remote-code --mem-fraction-static 0.9 --max-prefill-tokens 32768"
