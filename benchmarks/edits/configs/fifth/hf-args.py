from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

batch = 32
args = TrainingArguments(
    output_dir="cls",
    per_device_train_batch_size=batch,
    per_device_eval_batch_size=batch * 2,
    gradient_accumulation_steps=1,
    fp16=True,
    eval_strategy="epoch",
    include_for_metrics=["inputs"],
    **{"num_train_epochs": 3},
)
model = AutoModelForSequenceClassification.from_pretrained("microsoft/deberta-v3-large", num_labels=3)
Trainer(model=model, args=args).train()
