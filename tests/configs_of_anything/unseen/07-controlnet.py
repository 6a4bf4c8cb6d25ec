import argparse

import torch


def options():
    p = argparse.ArgumentParser("edge-guided pictures")
    p.add_argument("--pretrained", default="runwayml/stable-diffusion-v1-5")
    p.add_argument("--resolution", type=int, default=640)
    p.add_argument("--train_batch_size", type=int, default=3)
    p.add_argument("--grad_acc", type=int, default=6)
    p.add_argument("--use_8bit_adam", action="store_true")
    p.add_argument("--lr", type=float, default=1e-5)
    p.add_argument("--mixed", dest="mixed_precision", default="bf16", choices=["no", "fp16", "bf16"])
    p.add_argument("--workers", type=int, default=2)
    return p.parse_args()


args = options()
device = torch.device("cuda")
