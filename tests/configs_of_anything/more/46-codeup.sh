python finetune.py \
    --base_model='huggyllama/llama-13b' \
    --data_path='data/code_19k.json' \
    --num_epochs=10 \
    --cutoff_len=640 \
    --group_by_length \
    --output_dir='./peft' \
    --lora_target_modules='[q_proj,k_proj,v_proj,o_proj]' \
    --lora_r=12 \
    --micro_batch_size=6
