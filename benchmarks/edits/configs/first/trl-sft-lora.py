from datasets import load_dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM
from trl import SFTConfig, SFTTrainer
model = AutoModelForCausalLM.from_pretrained("google/gemma-2-9b", device_map="auto")
model.to("cuda")
config = SFTConfig("out", per_device_train_batch_size=4, max_seq_length=4096, bf16=(True and not False))
trainer = SFTTrainer(model, args=config, train_dataset=load_dataset("timdettmers/openassistant-guanaco", split="train"),
                     peft_config=LoraConfig(r=64, target_modules="all-linear", task_type="CAUSAL_LM"))
trainer.train()
