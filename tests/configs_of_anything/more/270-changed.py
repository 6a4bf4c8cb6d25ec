import torch
class Config:
    batch_size = 64
    image_size = 224
    num_workers = 4
cfg = Config()
cfg.batch_size = 15
cfg.image_size = 336
