accelerate launch --mixed_precision=fp16 src/f5_tts/train/train.py --config-name F5TTS_v1_Base.yaml datasets.batch_size_per_gpu=19200 datasets.max_samples=32 optim.bnb_optimizer=True
