import pytorch_lightning as pl
BATCH = 36
WORKERS = 5
class DM(pl.LightningDataModule):
    def __init__(self, batch_size=BATCH, num_workers=WORKERS, image_size=288): ...
trainer = pl.Trainer(max_epochs=30, devices=2, precision="16-mixed", accumulate_grad_batches=3)
