import torch, lightning as L
from transformers import AutoModelForCausalLM, AutoTokenizer
class LitLLM(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-3B", torch_dtype=torch.bfloat16)
    def training_step(self, batch, idx):
        return self.model(**batch).loss
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-5)
tok = AutoTokenizer.from_pretrained("Qwen/Qwen2.5-3B")
def collate(b):
    return tok([x["text"] for x in b], return_tensors="pt", padding=True, truncation=True, max_length=2048)
dl = torch.utils.data.DataLoader(ds, batch_size=4, collate_fn=collate)
trainer = L.Trainer(accelerator="gpu", devices=1, precision="bf16-mixed", accumulate_grad_batches=4)
trainer.fit(LitLLM(), dl)
