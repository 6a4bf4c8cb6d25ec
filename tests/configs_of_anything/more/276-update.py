import torch
cfg = {"batch_size": 64, "epochs": 3, "lr": 1e-4}
cfg.update({"batch_size": 7})
cfg["seq_len"] = 896
