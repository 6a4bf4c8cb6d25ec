import argparse, os
from dataclasses import dataclass, field
from typing import Optional
import transformers
from transformers import HfArgumentParser, Trainer

@dataclass
class ModelArguments:
    model_name_or_path: str = field(default="Qwen/Qwen2.5-VL-7B-Instruct")
    vision_tower: Optional[str] = field(default=None)
    tune_vision: bool = field(default=False)
    lora_enable: bool = field(default=False)
    lora_r: int = field(default=64)

@dataclass
class DataArguments:
    data_path: str = field(default=None, metadata={"help": "where"})
    max_pixels: int = field(default=28 * 28 * 576)

@dataclass
class TrainingArguments(transformers.TrainingArguments):
    cache_dir: Optional[str] = field(default=None)
    optim: str = field(default="adamw_torch")
    model_max_length: int = field(default=512)

def train():
    parser = HfArgumentParser((ModelArguments, DataArguments, TrainingArguments))
    model_args, data_args, training_args = parser.parse_args_into_dataclasses()
    model = transformers.AutoModelForVision2Seq.from_pretrained(
        model_args.model_name_or_path, cache_dir=training_args.cache_dir, torch_dtype="bfloat16", attn_implementation="flash_attention_2"
    )
    processor = transformers.AutoProcessor.from_pretrained(model_args.model_name_or_path, max_pixels=data_args.max_pixels)
    trainer = Trainer(model=model, args=training_args, processing_class=processor)
    trainer.train()

if __name__ == "__main__":
    train()
