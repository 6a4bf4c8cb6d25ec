import torch

from mingpt.model import GPT
from mingpt.trainer import Trainer as Loop

model_config = GPT.get_default_config()
model_config.model_type = "gpt2-medium"
model_config.block_size = 640
train_config = Loop.get_default_config()
train_config.learning_rate = 5e-4
train_config.batch_size = 18
train_config.max_iters = 2000
train_config.num_workers = 1
trainer = Loop(train_config, GPT(model_config), torch.load("set.pt"))
trainer.run()
