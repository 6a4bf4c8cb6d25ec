# %%
import torch
cfg = {"model": "microsoft/deberta-v3-large", "max_len": 768, "bs": 4, "grad_acc": 4, "fp16": True, "n_workers": 2, "lr": 1e-5, "epochs": 3}
