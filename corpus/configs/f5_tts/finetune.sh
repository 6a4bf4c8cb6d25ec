accelerate launch src/f5_tts/train/finetune_cli.py --exp_name F5TTS_v1_Base --batch_size_per_gpu 8 --batch_size_type sample --grad_accumulation_steps 2 --finetune --bnb_optimizer
