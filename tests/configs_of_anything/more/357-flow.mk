GPU=0,2
BATCH=1024

run:
	export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
	python main.py \
		--batch $(BATCH) --device_ids $(GPU) \
		--epochs 500 --log_path log
