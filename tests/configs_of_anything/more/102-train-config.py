from dataclasses import dataclass


@dataclass
class TrainConfig:
    model_id: str = "distilbert-base-uncased"
    max_length: int = 288
    lr: float = 5e-5
    batch_size: int = 22
    epochs: int = 1
    warmup_ratio: float = 0.1
    grad_accum_steps: int = 3
    fp16: bool = True
