import torch
from transformers import AutoModel


class CFG:
    model = "microsoft/deberta-v3-large"
    max_len = 768
    train_bs = 4
    valid_bs = 8
    gradient_accumulation_steps = 8
    apex = True
    gradient_checkpointing = True
    epochs = 4
    encoder_lr = 2e-5
    n_fold = 4
