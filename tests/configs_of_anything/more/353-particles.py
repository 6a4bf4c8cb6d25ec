from dataclasses import dataclass


@dataclass
class Config:
    model_path: str = "./models/"
    batch_size: int = 3
    lr_init: float = 1e-4
    amp_enable: bool = False
    amp_dtype: str = "float16"
    gradient_accumulation_steps: int = 2
    num_workers: int = 5
    pin_memory: bool = True
    world_size: int = 1
    rank: int = 0
