python run_summarization.py --model_name_or_path google/flan-t5-xl \
    --do_train --per_device_train_batch_size 4 \
    --max_source_length 2048 --predict_with_generate --output_dir out
