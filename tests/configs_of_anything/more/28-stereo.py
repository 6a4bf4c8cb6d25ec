import argparse
import torch

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", default="stereo", help="name your experiment")
    parser.add_argument("--restore_ckpt", help="restore checkpoint")
    parser.add_argument("--mixed_precision", action="store_true", help="use mixed precision")
    parser.add_argument("--batch_size", type=int, default=7, help="batch size used during training.")
    parser.add_argument("--train_datasets", nargs="+", default=["sceneflow"])
    parser.add_argument("--lr", type=float, default=0.0002)
    parser.add_argument("--num_steps", type=int, default=100000)
    parser.add_argument("--image_size", type=int, nargs="+", default=[352, 736], help="size of the random crops")
    parser.add_argument("--train_iters", type=int, default=16)
    parser.add_argument("--wdecay", type=float, default=0.00001)
    parser.add_argument("--valid_iters", type=int, default=32)
    parser.add_argument("--corr_levels", type=int, default=4)
    parser.add_argument("--hidden_dims", nargs="+", type=int, default=[128] * 3)
    args = parser.parse_args()
