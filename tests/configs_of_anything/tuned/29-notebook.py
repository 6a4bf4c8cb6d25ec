# %% [markdown]
# Leaf diseases
# %%
import timm
import torch
from torch.utils.data import DataLoader

# %%
class CFG:
    seed = 719
    model_arch = "tf_efficientnet_b4_ns"
    img_size = 512
    epochs = 10
    train_bs = 28
    valid_bs = 32
    lr = 1e-4
    num_workers = 4
    accum_iter = 2
    device = "cuda:0"


# %%
train_loader = DataLoader(train_set, batch_size=CFG.train_bs, num_workers=CFG.num_workers, pin_memory=False)
val_loader = DataLoader(valid_set, batch_size=CFG.valid_bs, num_workers=CFG.num_workers)
model = timm.create_model(CFG.model_arch, pretrained=True)
