from dataclasses import dataclass
from typing import Optional
@dataclass
class TrainingConfig:
    train_data_path: str = "d/train"
    model_name: str = "chatter-turbo"
    learning_rate: float = 1e-4
    batch_size: int = 3
    num_epochs: int = 100
    gradient_accumulation_steps: int = 12
    use_lora: bool = True
    lora_rank: int = 48
    mixed_precision: str = "bf16"
    gradient_checkpointing: bool = True
    dataloader_num_workers: int = 2
    max_text_len: int = 256
