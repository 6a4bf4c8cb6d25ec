from dataclasses import dataclass


@dataclass
class GPTConfig:
    # model
    max_sequence_len: int = 1536
    vocab_size: int = 50257
    n_layer: int = 18
    n_head: int = 14
    d_model: int = 896
    mlp_hidden_dim: int = 4 * d_model

    # optimizer
    max_lr = 6e-4
    min_lr = max_lr * 0.1
    weight_decay = 0.1

    # training
    warmup_steps = 900
    max_steps = 20000
    total_batch_size = 491520
    micro_batch_size = 20
    sequence_len = 1536
    resume_from_checkpoint = False
