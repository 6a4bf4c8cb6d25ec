import os

import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

torch.cuda.set_device(0)
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
args = TrainingArguments("out", per_device_train_batch_size=4, bf16=True)
model = AutoModelForCausalLM.from_pretrained("somebody/private-3b")
trainer = Trainer(model=model, args=args, train_dataset=data)
trainer.train()
