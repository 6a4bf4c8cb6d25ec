import numpy as np, torch
np.set_printoptions(precision=16, suppress=True)
torch.set_printoptions(precision=16)
batch_size = 13
r = 8
rank = 4
lr = 0.1
h, w = 480, 640
