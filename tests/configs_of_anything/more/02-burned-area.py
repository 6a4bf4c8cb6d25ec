_base_ = ["../models/mit_b2.py", "../datasets/fires.py"]
name = "mit-b2-fires"
trainer = dict(
    max_epochs=60,
    precision=16,
    accelerator="gpu",
    strategy=None,
    devices=2,
)
data = dict(
    batch_size_train=24,
    batch_size_eval=12,
    num_workers=6,
    patch_size=512,
)
