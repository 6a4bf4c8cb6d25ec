from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from peft import LoraConfig, get_peft_model
from trl import SFTConfig, SFTTrainer
import time, torch

BASE = "microsoft/Phi-3.5-mini-instruct"
tok = AutoTokenizer.from_pretrained(BASE)
model = AutoModelForCausalLM.from_pretrained(BASE, torch_dtype=torch.float16, device_map="auto")
lora = LoraConfig(
    r=16, lora_alpha=32,
    lora_dropout=0.1,  # the run without it overfitted
    target_modules=["qkv_proj", "o_proj", "gate_up_proj", "down_proj"],
    task_type="CAUSAL_LM",
)
model = get_peft_model(model, lora)
dataset = load_dataset("json", data_files={"train": "train.jsonl", "validation": "valid.jsonl"})

calib_args = SFTConfig(
    output_dir="/content/calib",
    per_device_train_batch_size=4,
    gradient_accumulation_steps=2,
    max_steps=20,
    logging_steps=5,
    fp16=True,
    optim="paged_adamw_8bit",
    report_to="none",
    max_length=1024,
    dataset_text_field=None,
)
calib = SFTTrainer(model=model, args=calib_args, train_dataset=dataset["train"])
t0 = time.time()
calib.train()
rate = 20 / (time.time() - t0)
batch = 4 * 2
steps = len(dataset["train"]) // batch
for epochs in [1, 2, 3]:
    print(f"  {epochs}: {epochs * steps / rate / 60:.1f} min")

final_args = SFTConfig(
    output_dir="/content/final",
    per_device_train_batch_size=4,
    gradient_accumulation_steps=2,
    num_train_epochs=2,
    fp16=True,
    optim="paged_adamw_8bit",
    report_to="none",
    max_length=1024,
    eval_strategy="steps", eval_steps=50,
)
SFTTrainer(model=model, args=final_args, train_dataset=dataset["train"], eval_dataset=dataset["validation"]).train()
