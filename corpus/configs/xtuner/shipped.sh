NPROC_PER_NODE=8 xtuner train internlm2_chat_7b_qlora_oasst1_e3 --deepspeed deepspeed_zero3_offload \
  --cfg-options train_dataloader.batch_size=2 train_dataloader.dataset.max_length=1024
