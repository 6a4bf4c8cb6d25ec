#!/bin/sh

#SBATCH -J tune
#SBATCH -p A100-80GB
#SBATCH --gres=gpu:2
#SBATCH --nodes=1
#SBATCH --ntasks=1

cd  $SLURM_SUBMIT_DIR
srun -l /bin/hostname
source $HOME/anaconda3/etc/profile.d/conda.sh
conda activate tune
cd $HOME/torchtune/
export NCCL_P2P_DISABLE=1
tune run --nproc_per_node 2 lora_finetune_distributed --config llama3/70B_lora batch_size=2 tokenizer.max_seq_len=4096

cd $SLURM_SUBMIT_DIR
conda deactivate
squeue --job $SLURM_JOBID
