import os

data_aug_max_size = 1333
num_classes = 91
lr = 0.0001
param_dict_type = "default"
lr_backbone = 1e-05
batch_size = 3
weight_decay = 0.0001
epochs = 12
lr_drop = 11
modelname = "dino"
backbone = "swin_L_384_22k"
use_checkpoint = True
enc_layers = 6
dec_layers = 6
hidden_dim = 256
num_queries = 900
use_ema = False
amp = False
