import argparse

import accelerate
import bitsandbytes
import torch


def run():
    parser = argparse.ArgumentParser()
    parser.add_argument("--path", type=str)
    parser.add_argument("--lora_rank", type=int, default=12)
    parser.add_argument("--batch_size", type=int, default=3)
    parser.add_argument("--num_workers", type=int, default=7)
    args = parser.parse_args()
    accelerator = accelerate.Accelerator(mixed_precision="bf16")
    config = shape("7b")
    config.gradient_checkpointing = True
    model = create("7b", config=config, path=args.path, use_4bit=True)
    optimizer = bitsandbytes.optim.AdamW(model.parameters(), lr=1e-4, is_paged=True, optim_bits=32)
