if [ "$1" = llama3 ]; then
	tune run --nproc_per_node 4 lora_finetune_distributed --config llama3_1/8B_lora dtype=fp32 batch_size=8
fi
