from dataclasses import dataclass

import torch
from segment_anything import sam_model_registry


@dataclass
class Options:
    checkpoint: str = "sam_vit_h.pth"
    image_size: int = 1024
    batch_size: int = 2
    epochs: int = 30
    lr: float = 8e-5
    workers: int = 4
    amp: bool = True
    weight_decay: float = 0.1


options = Options()
sam = sam_model_registry["vit_h"](options.checkpoint).cuda()
optimizer = torch.optim.AdamW(sam.mask_decoder.parameters(), lr=options.lr, weight_decay=options.weight_decay)
