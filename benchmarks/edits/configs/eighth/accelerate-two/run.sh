CUDA_VISIBLE_DEVICES=4,5,6,7 accelerate launch --config_file zero2.yaml --main_process_port 29501 \
  full_ft.py \
  --base meta-llama/Llama-3.1-8B-Instruct \
  --training_config sft_config.yaml \
  --stype lima \
  --langs en

CUDA_VISIBLE_DEVICES=4,5,6,7 MODEL_DIR=saved/lima DP_SIZE=4 bash eval.sh
