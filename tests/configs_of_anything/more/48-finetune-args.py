from dataclasses import dataclass, field


@dataclass
class FinetuneArguments:
    model_name_or_path: str = field(default="Qwen/Qwen-7B")
    data_path: str = field(default="data.json")
    train_size: int = field(default=-1)
    test_size: int = field(default=200)
    max_len: int = field(default=1800)
    quantization: str = field(default="4bit")
    half: bool = field(default=True)
    lora_rank: int = field(default=6)
    per_device_batch: int = field(default=2)
    lr: float = field(default=1e-4)
