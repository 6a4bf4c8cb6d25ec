import pytorch_lightning as pl
from torch.utils.data import DataLoader

BATCH = 21
N_GPU = 2


def main(dataset):
    loader = DataLoader(dataset, batch_size=BATCH, num_workers=8, pin_memory=True)
    trainer = pl.Trainer(max_epochs=10, devices=N_GPU, precision="16-mixed", accumulate_grad_batches=2)
