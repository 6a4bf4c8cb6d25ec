GPU ?= 0
train:
	CUDA_VISIBLE_DEVICES=$(GPU) python train_depth.py \
	  --data kitti --batch-size 6 --height 192 --width 640 \
	  --workers 8 --amp --epochs 20 --lr 1e-4

clean:
	rm -rf runs
