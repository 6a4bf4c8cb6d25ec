import torch
from easydict import EasyDict

cfg = EasyDict()
cfg.host = "0.0.0.0"
cfg.port = 29536
cfg.param_dtype = torch.bfloat16
cfg.save_root = "./train_out"
cfg.patch_size = (1, 2, 2)
cfg.batch_size = 3
cfg.gradient_accumulation_steps = 10
cfg.learning_rate = 1e-5
cfg.height = 256
cfg.width = 320
cfg.num_frames = 17
cfg.load_worker = 16
