#!/bin/bash
torchrun --nproc_per_node 8 train/sft.py \
    --fsdp 'full_shard auto_wrap' \
    --fsdp_config '{"transformer_layer_cls_to_wrap": ["Qwen2DecoderLayer"], "min_num_params": 0, "xla": false, "xla_fsdp_v2": false, "xla_fsdp_grad_ckpt": false}' \
    --per_device_train_batch_size 1 \
    --bf16 True \
    --optim adamw_torch \
    --group_by_length False \
    --dataloader_pin_memory True \
    --report_to wandb \
    --max_seq_length 32768 \
    --model_name_or_path Qwen/Qwen2.5-32B-Instruct
