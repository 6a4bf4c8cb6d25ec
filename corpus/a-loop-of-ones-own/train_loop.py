import torch
from torch.utils.data import DataLoader
from transformers import LlamaForCausalLM, LlamaTokenizer
from accelerate import Accelerator

accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=4)
tokenizer = LlamaTokenizer.from_pretrained("meta-llama/Llama-2-7b-hf")
model = LlamaForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf")
model.gradient_checkpointing_enable()

def collate(batch):
    return tokenizer([b["text"] for b in batch], padding="max_length", truncation=True, max_length=1024, return_tensors="pt")

loader = DataLoader(ds, batch_size=4, shuffle=True, collate_fn=collate, num_workers=4)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for batch in loader:
    with accelerator.accumulate(model):
        out = model(**batch, labels=batch["input_ids"])
        accelerator.backward(out.loss)
        optimizer.step()
        optimizer.zero_grad()
