python examples/pytorch/summarization/run_summarization.py \
  --model_name_or_path facebook/bart-large-cnn \
  --do_predict --predict_with_generate \
  --dataset_name cnn_dailymail \
  --per_device_eval_batch_size 64 --output_dir out
