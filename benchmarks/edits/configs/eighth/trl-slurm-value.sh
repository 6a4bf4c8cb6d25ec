#!/bin/bash
#SBATCH -J ablate
#SBATCH -p compute
#SBATCH -N 1
#SBATCH -t 8:00:00
#SBATCH --gres=gpu:a100-sxm4-80gb:2
#SBATCH --mem=50G

SUFFIX=$(date +'%Y-%m-%d')
YAML_PATH="recipes/value/ablate.yaml"

RUN_DIR=runs/ablation/v_${SUFFIX}
mkdir -p "${RUN_DIR}"

LOG_PATH="${RUN_DIR}/train.log"
RESULTS="${RUN_DIR}/results/"

cp "$0" "${RUN_DIR}/run_script.sh"

PORT=$(shuf -i25000-30000 -n1)
NUM_PROCESS=2

. /usr/share/modules/init/bash
module load cuda/12.4.1

CUDA_VISIBLE_DEVICES=0,1 ACCELERATE_LOG_LEVEL=info\
    accelerate launch --config_file recipes/accelerate_configs/zero2.yaml --num_processes $NUM_PROCESS --main_process_port $PORT\
    src/open_r1/grpo_value.py --config $YAML_PATH\
    --output_dir $RESULTS \
    --run_name v \
    --learning_rate 5e-6\
    --per_device_train_batch_size 8 --gradient_accumulation_steps 4 --num_generations 8 --max_completion_length 2048 --max_prompt_length 512\
    2>&1 | tee "$LOG_PATH"
