from dataclasses import dataclass


@dataclass
class TrainConfig:
    """tokens per update = micro_batch_size * grad_accum_steps * world * seq_len = 6 * 8 * 4 * 3072"""

    micro_batch_size: int = 6
    grad_accum_steps: int = 8
    seq_len: int = 3072
    total_tokens: float = 12e9
    lr: float = 3e-4
    compile_model: bool = False
    activation_checkpointing: bool = True
    dtype: str = "bfloat16"
    eval_batches: int = 40


if __name__ == "__main__":
    cfg = TrainConfig(seq_len=2560)
