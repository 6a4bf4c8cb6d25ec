BATCH ?= 18
GPUS = 2
train:
	python -m torch.distributed.run --nproc_per_node=$(GPUS) main.py --batch $(BATCH) --image-size 448 --amp --workers 4 --epochs 30
