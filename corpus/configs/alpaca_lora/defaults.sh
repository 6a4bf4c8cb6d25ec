torchrun --nproc_per_node=2 finetune.py --base_model 'yahma/llama-7b-hf' --data_path 'alpaca.json' --micro_batch_size 4 --batch_size 128
