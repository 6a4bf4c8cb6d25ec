import argparse
import torch
import whisper

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="large-v2")
parser.add_argument("--batch-size", type=int, default=3)
parser.add_argument("--dev-batch-size", type=int, default=5)
parser.add_argument("--no-timestamps-training", action="store_true")
parser.add_argument("--accum-grad-steps", type=int, default=16)
parser.add_argument("--use-adam-8bit", action="store_true", default=True)
parser.add_argument("--lr", type=float, default=1e-5)
parser.add_argument("--train-steps", type=int, default=5000)
