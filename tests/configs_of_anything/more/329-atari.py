import torch
import torch.optim as optim

BATCH_SIZE = 32
GAMMA = 0.99
EPS_START = 1.0
REPLAY_SIZE = 100000
LEARNING_RATE = 1e-4
SYNC_TARGET_FRAMES = 1000

optimizer = optim.Adam(net.parameters(), lr=LEARNING_RATE)
