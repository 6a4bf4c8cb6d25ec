import torch as t

runs = {}

runs["small"] = {
    "n_epochs": 9,
    "lr": 2e-4,
    "batch_size": 768,
    "dtype": t.float16,
    "weights_file": "out/last.pt",
    "num_workers": 3,
    "pin_memory": True,
    "seq_length": 192,
    "embed_dims": 512,
    "n_blocks": 10,
}
