tune run lora_finetune_single_device --config llama3_1/8B_lora_single_device batch_size=8 tokenizer.max_seq_len=8192 enable_activation_checkpointing=False model.lora_rank=128
