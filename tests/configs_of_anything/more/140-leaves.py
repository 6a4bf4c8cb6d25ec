import argparse

from src.training.leaves import main


def parse_args():
    ap = argparse.ArgumentParser("Run the trainer of leaves")
    ap.add_argument("--images", required=True)
    ap.add_argument("--epochs", type=int, default=15)
    ap.add_argument("--batch-size", type=int, default=5)
    ap.add_argument("--num-workers", type=int, default=3)
    ap.add_argument("--lr", type=float, default=2e-3)
    return ap.parse_args()


main(parse_args())
