python mason.py \
    --cluster ai2/jupiter --workspace ai2/tulu --priority normal --num_nodes 1 --budget ai2/oe --gpus 8 -- accelerate launch \
    --mixed_precision bf16 --num_processes 8 --use_deepspeed \
    --deepspeed_config_file configs/ds_configs/stage3_no_offloading_accelerate.conf \
    open_instruct/finetune.py \
    --exp_name sft_8b --model_name_or_path meta-llama/Llama-3.1-8B --tokenizer_name meta-llama/Llama-3.1-8B \
    --use_flash_attn --max_seq_length 8192 --per_device_train_batch_size 2 --gradient_accumulation_steps 8 \
    --learning_rate 5e-06 --num_train_epochs 2 --dataset_mixer_list allenai/tulu-3-sft-mixture 1.0 --packing
