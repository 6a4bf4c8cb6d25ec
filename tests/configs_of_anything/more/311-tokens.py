from dataclasses import dataclass
from typing import Tuple, Optional


@dataclass
class TrainConfig:
    vocab_size: int = 256
    d_model: int = 512
    n_layer: int = 12
    n_head: int = 8
    n_kv_head: int = 2
    seq_len: int = 1024
    dropout: float = 0.0
    lr: float = 3e-4
    weight_decay: float = 0.1
    warmup_steps: int = 2000
    max_steps: int = 200000
    batch_size_tokens: int = 1_048_576
    micro_bsz: int = 8
    grad_clip: float = 1.0
