"""Training configuration."""
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class ImageTrainConfig:
    seed: int = 42
    # examples of one optimizer step
    batch_size: int = 768
    # examples of one forward pass
    minibatch_size: int = 96
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.05
    grad_clip: float = 1.0
    dtype: Literal["bfloat16", "float32"] = "bfloat16"
    n_layers: int = 10
    n_heads: int = 8
