from dataclasses import dataclass
from typing import Optional


@dataclass
class TrainConfig:
    """Settings of a run. val_data_size: samples of the validation set."""

    n_epochs: int = 100
    batch_size: int = 256
    train_data_size: int = 100000
    val_data_size: int = 10000
    val_dataset: Optional[str] = None
    num_workers: int = 0
    precision: str = "16-mixed"
