import torch
import lightning as L
import os

os.environ["PYTORCH_MPS_HIGH_WATERMARK_RATIO"] = "0.0"
trainer = L.Trainer(accelerator="mps", devices=1, max_steps=1000)
trainer.fit(model, loader)
