from torch.utils.data import DataLoader
from easydict import EasyDict
import torch

args = EasyDict({"batch_size": 14, "epochs": 120, "learning_rate": 2e-3, "model_name": "Densenet121"})

train_dataloader = DataLoader(rows(0), batch_size=args.batch_size, shuffle=True, pin_memory=True, num_workers=2)
validation_dataloader = DataLoader(rows(1), batch_size=args.batch_size, pin_memory=True, num_workers=2)
test_dataloader = DataLoader(rows(2), batch_size=args.batch_size, pin_memory=True, num_workers=2)
optimizer = torch.optim.Adam(model.parameters(), lr=args.learning_rate)
