from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

BATCH = 32
model = AutoModelForSequenceClassification.from_pretrained("microsoft/deberta-v3-large", num_labels=3)
common = dict(learning_rate=2e-5, num_train_epochs=3, weight_decay=0.01)
args = TrainingArguments(output_dir="nli", per_device_train_batch_size=BATCH, per_device_eval_batch_size=BATCH * 2,
                         eval_strategy="steps", eval_steps=500, fp16=True, **common)
Trainer(model=model, args=args, train_dataset=None, eval_dataset=None).train()
