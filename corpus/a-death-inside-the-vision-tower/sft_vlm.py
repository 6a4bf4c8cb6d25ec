import torch
from transformers import Qwen2VLForConditionalGeneration, AutoProcessor, TrainingArguments
from trl import SFTTrainer, SFTConfig
from peft import LoraConfig
model = Qwen2VLForConditionalGeneration.from_pretrained("Qwen/Qwen2-VL-7B-Instruct", torch_dtype=torch.bfloat16, attn_implementation="flash_attention_2", device_map="auto")
processor = AutoProcessor.from_pretrained("Qwen/Qwen2-VL-7B-Instruct")
args = SFTConfig(output_dir="o", per_device_train_batch_size=4, gradient_accumulation_steps=4, gradient_checkpointing=True, bf16=True, max_seq_length=2048, dataset_kwargs={"skip_prepare_dataset": True})
trainer = SFTTrainer(model=model, args=args, train_dataset=ds, data_collator=collate_fn, peft_config=LoraConfig(r=8, target_modules=["q_proj","v_proj"]))
trainer.train()
