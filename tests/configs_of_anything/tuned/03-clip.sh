export CUDA_VISIBLE_DEVICES=0,1
python -m open_clip_train.main --train-data /shards/{000..099}.tar --train-num-samples 900000 --dataset-type webdataset \
  --model ViT-L-14 --batch-size 320 --precision amp --workers 6 --epochs 12 --accum-freq 4 --grad-checkpointing --local-loss --gather-with-grad
