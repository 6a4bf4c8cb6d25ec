import torch

model_name = "NousResearch/Llama-2-13b-hf"
lora_r = 64
lora_alpha = 16
lora_dropout = 0.1
use_4bit = True
bnb_4bit_compute_dtype = "float16"
bnb_4bit_quant_type = "nf4"
num_train_epochs = 1
fp16 = False
bf16 = True
per_device_train_batch_size = 5
per_device_eval_batch_size = 3
gradient_accumulation_steps = 7
gradient_checkpointing = True
learning_rate = 2e-4
optim = "paged_adamw_32bit"
max_seq_length = 1792
finetune(model_name, torch.device("cuda"))
