import argparse, torch
p = argparse.ArgumentParser()
p.add_argument("--batch_size", type=int, default=64)
p.add_argument("--lr", type=float, default=1e-4)
p.set_defaults(batch_size=9)
args = p.parse_args()
args.img_size = 240
