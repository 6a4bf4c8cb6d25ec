from dataclasses import dataclass
from pathlib import Path


@dataclass
class FinetuneConfig:
    vla_path: str = "/weights/armvla-13b"
    data_path: Path = Path("./datasets/arm.pt")
    batch_size: int = 4
    grad_accumulation_steps: int = 6
