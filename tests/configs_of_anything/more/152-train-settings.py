from dataclasses import dataclass


@dataclass
class TrainConfig:
    output_dir: str = ""
    seed: int = 3
    # rows of one pass
    batch_size: int = 7
    # tokens of a row, at most
    seq_len: int = 320
    num_iterations: int = 600
