# made for this test
from detectron2.config import LazyCall as L
from ..common.coco_loader import dataloader
from ..common.models.mask_rcnn_vitdet import model

train = dict(amp=dict(enabled=True), max_iter=90000)
dataloader.train.total_batch_size = 32
dataloader.train.num_workers = 8
model.backbone.net.use_act_checkpoint = True
