import sys
from dataclasses import dataclass, field
from typing import Optional
from transformers import AutoModelForSequenceClassification, HfArgumentParser, Trainer, TrainingArguments

@dataclass
class ModelArguments:
    model_name_or_path: str = field(metadata={"help": "which"})
    problem_type: Optional[str] = field(default="single_label_classification")

@dataclass
class DataTrainingArguments:
    max_seq_length: int = field(default=128)
    pad_to_max_length: bool = field(default=True)

def main():
    parser = HfArgumentParser((ModelArguments, DataTrainingArguments, TrainingArguments))
    if len(sys.argv) == 2 and sys.argv[1].endswith(".json"):
        model_args, data_args, training_args = parser.parse_json_file(json_file=sys.argv[1])
    else:
        model_args, data_args, training_args = parser.parse_args_into_dataclasses()
    model = AutoModelForSequenceClassification.from_pretrained(model_args.model_name_or_path)
    Trainer(model=model, args=training_args).train()

main()
