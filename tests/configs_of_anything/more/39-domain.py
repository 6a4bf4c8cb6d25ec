import argparse

import torch

BATCH_SIZE = 6
ITER_SIZE = 4
NUM_WORKERS = 5
INPUT_SIZE = "1024,512"
NUM_CLASSES = 19
NUM_STEPS = 10000
SNAPSHOT_DIR = "./checkpoints/exp1/"


def get_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=BATCH_SIZE)
    parser.add_argument("--iter-size", type=int, default=ITER_SIZE)
    parser.add_argument("--num-workers", type=int, default=NUM_WORKERS)
    parser.add_argument("--input-size", type=str, default=INPUT_SIZE)
    parser.add_argument("--learning-rate", type=float, default=2.5e-4)
    return parser.parse_args()
