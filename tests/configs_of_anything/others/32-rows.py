from dataclasses import dataclass


@dataclass
class LoadConfig:
    batch_size: int = 9000
    max_workers: int = 4
    chunk_size: int = 500
    lookback_days: int = 7
    max_retries: int = 3
