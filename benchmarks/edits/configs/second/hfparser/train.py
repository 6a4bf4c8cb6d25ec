from dataclasses import dataclass, field
import transformers
from transformers import HfArgumentParser, Trainer, AutoModelForCausalLM


@dataclass
class ModelArguments:
    model_name_or_path: str = field(default="x")
    use_lora: bool = field(default=False)


@dataclass
class TrainingArguments(transformers.TrainingArguments):
    model_max_length: int = field(default=4096)


parser = HfArgumentParser((ModelArguments, TrainingArguments))
m, a = parser.parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained(m.model_name_or_path, torch_dtype="auto")
Trainer(model=model, args=a, train_dataset=None).train()
