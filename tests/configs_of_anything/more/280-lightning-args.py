import lightning as L, argparse, torch
from torch.utils.data import DataLoader
p = argparse.ArgumentParser()
p.add_argument("--batch_size", type=int, default=24)
p.add_argument("--img_size", type=int, default=512)
p.add_argument("--num_workers", type=int, default=6)
args = p.parse_args()
class Net(L.LightningModule):
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-4)
train_dl = DataLoader(ds, batch_size=args.batch_size, num_workers=args.num_workers)
val_dl = DataLoader(vs, batch_size=1, num_workers=2)
trainer = L.Trainer(accelerator="gpu", devices=4, precision="bf16-mixed", max_epochs=5)
trainer.fit(Net(), train_dl, val_dl)
