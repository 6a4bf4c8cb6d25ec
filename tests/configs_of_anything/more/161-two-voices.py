from dataclasses import dataclass


@dataclass
class TTSTrainingConfig:
    batch_size: int = 12
    learning_rate: float = 2e-4


@dataclass
class VocoderTrainingConfig:
    batch_size: int = 40
    learning_rate: float = 3e-4
    train_workers: int = 6
