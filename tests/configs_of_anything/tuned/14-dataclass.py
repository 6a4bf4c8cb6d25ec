from dataclasses import dataclass, field

import torch
import tyro


@dataclass
class GPTConfig:
    block_size: int = 2048
    vocab_size: int = 50304
    n_layer: int = 24
    n_head: int = 16
    n_embd: int = 1024


@dataclass
class TrainConfig:
    total_batch_size: int = 2**19
    micro_batch_size: int = 16
    max_lr: float = 6e-4
    weight_decay: float = 0.1
    use_compile: bool = True
    betas: tuple = field(default=(0.9, 0.95))
    grad_clip: float = 1.0


cfg = tyro.cli(TrainConfig)
device = torch.device("cuda")
