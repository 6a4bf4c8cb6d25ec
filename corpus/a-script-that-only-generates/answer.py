import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

name = "Qwen/Qwen2.5-7B-Instruct"
tokenizer = AutoTokenizer.from_pretrained(name, padding_side="left")
model = AutoModelForCausalLM.from_pretrained(name).to("cuda").eval()

prompts = [line.strip() for line in open("questions.txt")][:64]
inputs = tokenizer(prompts, return_tensors="pt", padding=True).to("cuda")
with torch.inference_mode():
    answers = model.generate(**inputs, max_new_tokens=1024)
print(tokenizer.batch_decode(answers))
