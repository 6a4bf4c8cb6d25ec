import argparse

import torch
from omegaconf import OmegaConf

parser = argparse.ArgumentParser()
parser.add_argument("--prompt", type=str, default="a lighthouse at dusk")
parser.add_argument("--ddim_steps", type=int, default=50)
parser.add_argument("--n_iter", type=int, default=2)
parser.add_argument("--H", type=int, default=768, help="height in pixels")
parser.add_argument("--W", type=int, default=512, help="width in pixels")
parser.add_argument("--C", type=int, default=4)
parser.add_argument("--n_samples", type=int, default=3)
parser.add_argument("--scale", type=float, default=7.5)
parser.add_argument("--precision", type=str, choices=["full", "autocast"], default="autocast")
parser.add_argument("--ckpt", type=str, default="models/ldm/v1.ckpt")
opt = parser.parse_args()
config = OmegaConf.load("v1-inference.yaml")
with torch.no_grad():
    sample(config, opt)
