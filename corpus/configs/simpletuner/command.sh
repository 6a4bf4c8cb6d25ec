simpletuner train --model_family=sd3 --model_type=lora --lora_rank=64 --train_batch_size=2 --base_model_precision=nf4-bnb --data_backend_config=config/backend.json
