from copy import deepcopy

import ml_collections as mlc
import torch

consts = mlc.ConfigDict({"batch_size": 2, "n_res": 320, "n_seq": 128})
config = mlc.ConfigDict(
    {
        "data": {"train": {"crop_size": 320, "max_msa_clusters": 128}, "data_module": {"data_loaders": {"batch_size": 2, "num_workers": 11}}},
        "globals": {"blocks_per_ckpt": 1, "chunk_size": 4},
        "optimizer": {"name": "adam", "lr": 1e-3},
        "precision": "bf16",
    }
)
settings = deepcopy(config)
print(torch.cuda.device_count())
