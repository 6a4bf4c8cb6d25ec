from dataclasses import dataclass
@dataclass
class TrainConfig:
    total_batch_size: int = 2**19  # tokens
    batch_size: int = 6
    context_size: int = 2048
    train_steps: int = 19073
    bfloat16: bool = True
    ddp: bool = True
    compile: bool = True
