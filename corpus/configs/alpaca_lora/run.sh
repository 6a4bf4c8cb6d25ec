python finetune.py \
    --base_model 'yahma/llama-7b-hf' \
    --data_path 'alpaca.json' \
    --output_dir './out' \
    --micro_batch_size 2 \
    --cutoff_len 512 \
    --lora_r 8
