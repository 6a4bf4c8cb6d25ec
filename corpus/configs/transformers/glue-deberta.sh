torchrun --nproc_per_node 4 run_glue.py \
    --model_name_or_path microsoft/deberta-v3-large \
    --task_name mnli --do_train \
    --per_device_train_batch_size 8 \
    --fp16 --output_dir out
