import argparse
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--batchSize", type=int, default=18)
parser.add_argument("--imageSize", type=int, default=288)
parser.add_argument("--last_ckpt", type=str, default="logs/checkpoint/swin.pth")
parser.add_argument("--epochs", type=int, default=30)
parser.add_argument("--lr", type=float, default=1e-5)
parser.add_argument("--beta1", type=float, default=0.5)
parser.add_argument("--n_knn", type=int, default=100)
parser.add_argument("--nThreads", type=int, default=4, help="number of data loading threads")
