import argparse, torch
p = argparse.ArgumentParser()
p.add_argument("--batch_size", type=int, default=64)
p.add_argument("--epochs", type=int, default=4)
args = p.parse_args()
args.batch_size = 6
