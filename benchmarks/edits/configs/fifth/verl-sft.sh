torchrun --standalone --nnodes=1 --nproc_per_node=8 -m verl.trainer.fsdp_sft_trainer \
  data.train_files=gsm8k/train.parquet data.val_files=gsm8k/test.parquet \
  data.prompt_key=question data.response_key=answer data.max_length=4096 data.train_batch_size=64 \
  data.micro_batch_size_per_gpu=8 model.partial_pretrain=Qwen/Qwen2.5-7B-Instruct trainer.total_epochs=2 trainer.logger=console
