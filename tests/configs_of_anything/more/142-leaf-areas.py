from dataclasses import dataclass


@dataclass
class AreaTraining:
    model: str
    encoder: str
    batch_size: int = 10
    num_workers: int = 3
    lr: float = 2e-3
    epochs: int = 80
    gradient_clipping: float = 0.2
    resume: str | None = None
    use_amp: bool = False
    out: str = "out"
