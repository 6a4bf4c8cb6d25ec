# yaml beside options that all stand as --key=value
accelerate launch --config_file accelerate/multi.yaml tune_pairs.py recipes/pairs.yaml \
--output_dir=out/pairs \
--model_name_or_path=Qwen/Qwen2.5-1.5B-Instruct \
--per_device_train_batch_size=4 \
--gradient_accumulation_steps=2 \
--max_length=2048 \
--beta=0.1
