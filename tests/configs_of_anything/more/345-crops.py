import torch
from utils import augment

args = dict(
    cuda=True,
    train_dataset={
        "name": "streets",
        "kwargs": {
            "type": "crops",
            "size": 2400,
            "transform": augment.build([
                {"name": "Crop", "opts": {"keys": ("image", "label"), "size": (448, 448)}},
                {"name": "ToTensor", "opts": {"keys": ("image", "label")}},
            ]),
        },
        "batch_size": 12,
        "workers": 6,
    },
    val_dataset={"name": "streets", "kwargs": {"type": "val"}, "batch_size": 8, "workers": 6},
    lr=4e-4,
    n_epochs=150,
)
