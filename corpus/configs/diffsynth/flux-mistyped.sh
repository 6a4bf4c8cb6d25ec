accelerate launch examples/flux/model_training/train.py --dataset_base_path data --lora_base_model dit --lora_ranks 8 --model_paths '["flux.safetensors"]'
