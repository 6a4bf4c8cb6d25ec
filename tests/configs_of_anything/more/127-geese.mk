.PHONY: train

train:
	python yolo/train.py \
		--img 768 \
		--batch 6 \
		--epochs 30 \
		--data data/geese.yaml \
		--device 0,1 \
		--weights small.pt
