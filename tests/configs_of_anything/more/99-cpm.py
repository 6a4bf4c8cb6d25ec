from config_common import *

fp16 = True
dist_backend = "nccl"
gradient_accumulation_steps = 2
train_batch_size = 26
eval_batch_size = train_batch_size
max_steps = 60000
learning_rate = 0.0005
