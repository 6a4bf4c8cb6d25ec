torchrun --standalone --nnodes=1 --nproc_per_node=4 \
  -m verl.trainer.fsdp_sft_trainer \
  data.train_files=gsm8k.parquet data.max_length=4096 \
  data.micro_batch_size_per_gpu=8 data.train_batch_size=64 \
  model.partial_pretrain=Qwen/Qwen2.5-7B-Instruct \
  trainer.total_epochs=2 $@
