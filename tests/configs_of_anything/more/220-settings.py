import torch
from dataclasses import dataclass
@dataclass
class TrainSettings:
    batch_size: int = 60
    epoches: int = 8
    eval_interval_steps: int = 500
    gradient_accum_steps: int = 7
    lr: float = 5e-4
    optimizer = None
    device = torch.device("cuda")
