from dataclasses import dataclass


@dataclass
class ModelConfig:
    block_size: int = 1536
    vocab_size: int = 50000


@dataclass
class TrainConfig:
    adam_beta1: float = 0.9
    batch_size: int = 80
    warmup_steps: int = 500
    max_learning_rate: float = 6.0e-4
    optimizer: str = "adamw_torch"
    bf16: bool = True
    grad_ckpt: bool = True
