import argparse
from dinoseg.training.unet_full import TrainUNet, TrainCfg
def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--root", default="data/isic")
    ap.add_argument("--size", type=int, default=352)
    ap.add_argument("--batch", type=int, default=10)
    ap.add_argument("--workers", type=int, default=3)
    ap.add_argument("--epochs", type=int, default=50)
    ap.add_argument("--lr", type=float, default=3e-4)
    ap.add_argument("--weight_decay", type=float, default=1e-4)
    ap.add_argument("--amp", action="store_true")
    args = ap.parse_args()
