import os
os.environ["PYTORCH_MPS_HIGH_WATERMARK_RATIO"] = "0.0"

trainer = L.Trainer(accelerator='gpu', max_steps=10000)
trainer.fit(lmodel, train_loader, val_loader) # the exception is thrown all the same
