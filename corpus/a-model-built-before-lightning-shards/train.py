import lightning as L
from transformers import AutoModelForCausalLM


class Tuner(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = AutoModelForCausalLM.from_pretrained("somebody/private-70b")


trainer = L.Trainer(accelerator="gpu", devices=8, strategy="deepspeed_stage_3_offload", precision="16-mixed")
trainer.fit(Tuner(), train_dataloaders=loader)
