python finetune_cli.py --dataset_name "my_voice" --learning_rate 1e-5 --batch_size_per_gpu 2400 --batch_size_type "frame" --max_samples 48 --grad_accumulation_steps 2 --epochs 60 --bnb_optimizer
