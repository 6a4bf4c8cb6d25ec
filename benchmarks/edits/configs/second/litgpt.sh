litgpt finetune_full checkpoints/microsoft/phi-2 --precision bf16-true --devices 4 --train.micro_batch_size 8 --train.global_batch_size 64 --train.max_seq_length 2048
