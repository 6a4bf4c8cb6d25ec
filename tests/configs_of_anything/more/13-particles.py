from dataclasses import dataclass, field
from typing import Optional

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING


@dataclass
class DataConfig:
    path: str = MISSING
    batch_size: int = 3
    noise_std: float = 6.7e-4
    input_sequence_length: int = 6


@dataclass
class TrainingConfig:
    steps: int = 200000
    validation_interval: Optional[int] = None
    learning_rate: float = 1e-4


@dataclass
class HardwareConfig:
    cuda_device_number: Optional[int] = None
    n_gpus: int = 4


@dataclass
class Config:
    data: DataConfig = field(default_factory=DataConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    hardware: HardwareConfig = field(default_factory=HardwareConfig)


cs = ConfigStore.instance()
cs.store(name="base_config", node=Config)
