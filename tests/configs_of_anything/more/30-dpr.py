import argparse
import torch
from torch.utils.data import DataLoader


def build_parser():
    parser = argparse.ArgumentParser(description="Reranker training")
    parser.add_argument("-t", "--train", default="train.jsonl")
    parser.add_argument("--train_batch_size", default=2, type=int, help="mini-batch size")
    parser.add_argument("--iter_size", default=16, type=int, help="accumulated gradient")
    parser.add_argument("--num_epoch", default=5, type=int)
    parser.add_argument("--learning_rate", default=1e-5, type=float)
    parser.add_argument("--max_length", default=400, type=int)
    parser.add_argument("--dataloader_workers", default=2, type=int)
    parser.add_argument("--encoder", default="google/electra-base-discriminator", type=str)
    parser.add_argument("--criterion", default=None, type=str)
    parser.add_argument("--fp16", action="store_true", default=False)
    parser.add_argument("--optim", default="adamw")
    return parser
