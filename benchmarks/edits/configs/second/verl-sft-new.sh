torchrun --nnodes=2 --nproc_per_node=8 --node_rank=$RANK --master_addr=$ADDR -m verl.trainer.sft_trainer \
 data.train_files=t.parquet data.train_batch_size=128 data.max_length=8192 data.micro_batch_size_per_gpu=4 \
 model.path=Qwen/Qwen2.5-32B engine=fsdp engine.strategy=fsdp2 optim.lr=1e-5 trainer.total_epochs=1
