import argparse

parser = argparse.ArgumentParser(description='Cabin monitoring training')

parser.add_argument('--trainIters', default=0, type=int, help='Total train iters')
parser.add_argument('--valIters', default=0, type=int, help='Total valid iters')
parser.add_argument('-j', '--workers', default=2, type=int, metavar='N',
                    help='number of data loading workers (default: 4)')
parser.add_argument('-b', '--batch-size', default=8, type=int,
                    metavar='N', help='mini-batch size (default: 256)')
parser.add_argument('-l', '--learning_rate', default=0.001, type=float, help='LR')
parser.add_argument('--epochs', default=30, type=int)
args = parser.parse_args()
