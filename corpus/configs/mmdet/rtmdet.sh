python mmdetection/tools/train.py configs/rtmdet/rtmdet_l_8xb32-300e_coco.py --amp --cfg-options train_dataloader.batch_size=8 train_dataloader.num_workers=4
