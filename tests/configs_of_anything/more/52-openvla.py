from dataclasses import dataclass
from pathlib import Path

import draccus
import torch


@dataclass
class FinetuneConfig:
    vla_path: str = "openvla/openvla-7b"
    data_root_dir: Path = Path("datasets/open-x")
    dataset_name: str = "droid_wipe"
    batch_size: int = 11
    max_steps: int = 200_000
    save_steps: int = 5000
    learning_rate: float = 5e-4
    grad_accumulation_steps: int = 2
    image_aug: bool = True
    shuffle_buffer_size: int = 100_000
    use_lora: bool = True
    lora_rank: int = 40
    lora_dropout: float = 0.0
    use_quantization: bool = False


@draccus.wrap()
def finetune(cfg: FinetuneConfig) -> None:
    pass
