import argparse
import torch

parser = argparse.ArgumentParser(description="Training")
parser.add_argument("-j", "--workers", default=2, type=int, metavar="N", help="data loading workers (default: 4)")
parser.add_argument("-b", "--batch-size", default=20, type=int, metavar="N", help="mini-batch size (default: 256)")
parser.add_argument("-l", "--learning_rate", default=0.001, type=float)
parser.add_argument("-e", "--epochs", default=30, type=int)
parser.add_argument("-i", "--imgSize", default=416, type=int)
parser.add_argument("--use-half", action="store_true")
