args = TrainingArguments(
    output_dir="out",