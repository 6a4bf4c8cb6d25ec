import torch
from transformers import AutoModelForCausalLM, BitsAndBytesConfig
from peft import LoraConfig, get_peft_model

MODEL = "mistralai/Mistral-7B-v0.1"
MAX_LEN = 1024
BATCH = 2
ACCUM = 16

bnb = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16)
model = AutoModelForCausalLM.from_pretrained(MODEL, quantization_config=bnb)
model.gradient_checkpointing_enable()
model = get_peft_model(model, LoraConfig(r=32, lora_alpha=64, target_modules=["q_proj", "v_proj"]))
loader = torch.utils.data.DataLoader(data, batch_size=BATCH, shuffle=True)
scaler = None
for step, batch in enumerate(loader):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(**batch).loss / ACCUM
    loss.backward()
