import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

name = "meta-llama/Llama-2-7b-hf"
tokenizer = AutoTokenizer.from_pretrained(name)
model = AutoModelForCausalLM.from_pretrained(name)
model.to("cuda")

batch = tokenizer("The capital of France is", return_tensors="pt").to("cuda")
with torch.no_grad():
    print(tokenizer.decode(model.generate(**batch, max_new_tokens=20)[0]))
