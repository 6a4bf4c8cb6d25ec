from dataclasses import dataclass

import torch
import tyro


@dataclass
class Args:
    exp_name: str = "ppo_atari"
    seed: int = 1
    cuda: bool = True
    total_timesteps: int = 10000000
    learning_rate: float = 2.5e-4
    num_envs: int = 8
    num_steps: int = 128
    num_minibatches: int = 4
    update_epochs: int = 4
    clip_coef: float = 0.1
    batch_size: int = 0
    minibatch_size: int = 0
