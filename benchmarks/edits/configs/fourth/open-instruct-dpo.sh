CARDS=8
PER_CARD=1
WHOLE=32
ACC=$(($WHOLE/$CARDS/$PER_CARD))
echo "$CARDS cards, $ACC steps are gathered"
accelerate launch \
    --mixed_precision bf16 \
    --num_machines 1 \
    --num_processes $CARDS \
    --use_deepspeed \
    --deepspeed_config_file configs/ds_configs/stage3_no_offloading_accelerate.conf \
    open_instruct/dpo_tune_cache.py \
    --model_name_or_path allenai/Llama-3.1-Tulu-3-8B-SFT \
    --use_flash_attn \
    --max_seq_length 4096 \
    --per_device_train_batch_size $PER_CARD \
    --gradient_accumulation_steps $ACC \
    --learning_rate 5e-07 --lr_scheduler_type linear --warmup_ratio 0.1 --num_train_epochs 1 \
    --dataset_mixer_list allenai/tulu-3-pref-mix 1.0 \
    --output_dir out/dpo --dpo_loss_type dpo_norm --dpo_beta 5 --logging_steps 1
