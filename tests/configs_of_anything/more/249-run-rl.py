from dataclasses import dataclass
import torch
@dataclass
class Args:
    total_timesteps: int = 10000000
    learning_rate: float = 2.5e-4
    num_envs: int = 8
    num_steps: int = 128
    num_minibatches: int = 4
    update_epochs: int = 4
    cuda: bool = True
