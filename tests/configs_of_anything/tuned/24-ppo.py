import time
from dataclasses import dataclass

import gymnasium as gym
import torch
import tyro


@dataclass
class Args:
    exp_name: str = "ppo_atari"
    env_id: str = "BreakoutNoFrameskip-v4"
    total_timesteps: int = 10_000_000
    learning_rate: float = 2.5e-4
    num_envs: int = 8
    num_steps: int = 128
    gamma: float = 0.99
    num_minibatches: int = 4
    update_epochs: int = 4
    minibatch_size: int = 256


args = tyro.cli(Args)
envs = gym.vector.SyncVectorEnv([lambda: gym.make(args.env_id)])
start, device = time.time(), torch.device("cuda")
