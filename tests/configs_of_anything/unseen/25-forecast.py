import argparse

import torch

parser = argparse.ArgumentParser(description="long horizon")
parser.add_argument("--model", default="PatchTST")
parser.add_argument("--seq_len", type=int, default=720)
parser.add_argument("--pred_len", type=int, default=96)
parser.add_argument("--batch_size", type=int, default=36)
parser.add_argument("--train_epochs", type=int, default=10)
parser.add_argument("--learning_rate", type=float, default=1e-4)
parser.add_argument("--num_workers", type=int, default=10)
parser.add_argument("--use_amp", action="store_true", default=False)
parser.add_argument("--devices", type=str, default="0,1,2,3")
args = parser.parse_args()
torch.manual_seed(2021)
