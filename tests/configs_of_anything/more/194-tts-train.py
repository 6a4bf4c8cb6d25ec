from configs import *
import os
from models.trainer import fit_model
train_config = TrainConfig(batch_size=12, lr=0.002, checkpoint_path="ckpt", gradient_clip=0.5, accumulate_grad=8, precision=16, gpus=2)
data_config = DataConfig(root_dir='/data/LJ', num_workers=9)
fit_model(ModelConfig(), data_config, train_config)
