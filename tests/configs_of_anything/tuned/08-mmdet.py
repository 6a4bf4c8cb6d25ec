_base_ = ["../_base_/models/mask-rcnn_r50_fpn.py", "../_base_/default_runtime.py"]
train_pipeline = [
    dict(type="LoadImageFromFile"),
    dict(type="Resize", scale=(1333, 800), keep_ratio=True),
    dict(type="PackDetInputs"),
]
train_dataloader = dict(batch_size=4, num_workers=3, persistent_workers=True, dataset=dict(type="CocoDataset"))
val_dataloader = dict(batch_size=1, num_workers=2, drop_last=False)
optim_wrapper = dict(type="AmpOptimWrapper", optimizer=dict(type="SGD", lr=0.02, momentum=0.9), accumulative_counts=2)
model = dict(backbone=dict(depth=101, with_cp=True))
train_cfg = dict(type="EpochBasedTrainLoop", max_epochs=24, val_interval=1)
