CUDA_VISIBLE_DEVICES=0 python run.py config.json
