import torch
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, Trainer, TrainingArguments
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
bnb = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=torch.bfloat16)
model = AutoModelForCausalLM.from_pretrained("tiiuae/falcon-40b", quantization_config=bnb, device_map={"": 0})
model = prepare_model_for_kbit_training(model)
model = get_peft_model(model, LoraConfig(r=16, target_modules=["query_key_value"]))
training_args = TrainingArguments("out", per_device_train_batch_size=4, max_steps=500, fp16=True)
Trainer(model=model, args=training_args, train_dataset=data).train()
