from flax import struct


@struct.dataclass
class Config:
    context_window: int = 96
    n_embd: int = 40
    n_head: int = 4
    n_layer: int = 4
    dropout_prob: float = 0.1
    vocab_size: int = 32
    batch_size: int = 48
    learning_rate: float = 4e-4
    n_epoch = 9
    weight_decay = 0.1
