#!/bin/bash
torchrun -m verl.trainer.fsdp_sft_trainer \
    data.train_files=train.parquet \
    data.val_files=test.parquet \
    data.prompt_key=question \
    data.response_key=answer \
    data.max_length=2048 \
    data.micro_batch_size_per_gpu=1 \
    model.partial_pretrain=Qwen/Qwen2.5-7B-Instruct \
    trainer.default_local_dir=out \
    trainer.project_name=sft \
    trainer.experiment_name=qwen-7b \
    trainer.total_epochs=2 \
    trainer.logger=['console']
