import argparse, torch, dgl
p = argparse.ArgumentParser()
p.add_argument('--gpu', type=int, default=0)
p.add_argument('--fan-out', type=str, default='10,25')
p.add_argument('--batch-size', type=int, default=1024)
p.add_argument('--num-workers', type=int, default=4)
p.add_argument('--num-hidden', type=int, default=256)
p.add_argument('--lr', type=float, default=0.003)
args = p.parse_args()
