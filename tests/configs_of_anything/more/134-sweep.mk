.PHONY: train_debug train_all

train_debug:
	python src/train.py -m epochs=3 arch=mobilenetv3 arch.batch_size=160

train_none:
	echo nothing
