from detectron2.config import LazyCall as L
from ..common.data.coco import dataloader
from ..common.models.mask_rcnn_vitdet import model

train = dict(amp=dict(enabled=True), ddp=dict(fp16_compression=True), max_iter=90000)
dataloader.train.total_batch_size = 12
dataloader.train.num_workers = 6
model.backbone.square_pad = 1024
optimizer = dict(lr=1e-4)
