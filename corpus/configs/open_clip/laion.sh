torchrun --nproc_per_node 8 -m open_clip_train.main --train-data "/data/laion/{0000..2000}.tar" --train-num-samples 1000000 --dataset-type webdataset \
  --batch-size 256 --accum-freq 4 --precision amp_bfloat16 --workers 6 --model ViT-L-14 --grad-checkpointing --local-loss --gather-with-grad --torchcompile
