python tools/train.py configs/dino/dino-4scale_r50_8xb2-12e_coco.py --launcher pytorch \
  --cfg-options train_dataloader.batch_size=1 optim_wrapper.accumulative_counts=4
