oumi train -c configs/recipes/llama3_1/sft/8b_full/train.yaml --training.per_device_train_batch_size 1 --training.enable_gradient_checkpointing true
