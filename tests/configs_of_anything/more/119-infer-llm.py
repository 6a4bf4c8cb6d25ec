import argparse
import torch
from transformers import AutoModelForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--base_model", default="Qwen/Qwen2.5-3B-Instruct")
parser.add_argument("--max_new_tokens", type=int, default=256)
parser.add_argument("--batch_size", type=int, default=12)
parser.add_argument("--dtype", default="bfloat16")
args = parser.parse_args()
