from sentence_transformers.cross_encoder import CrossEncoder, CrossEncoderTrainer, CrossEncoderTrainingArguments
from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss

model = CrossEncoder("FacebookAI/roberta-base", num_labels=1)
args = CrossEncoderTrainingArguments(
    output_dir="reranker", per_device_train_batch_size=48, gradient_accumulation_steps=2, gradient_checkpointing=True, bf16=True,
)
CrossEncoderTrainer(model=model, args=args, train_dataset=pairs, loss=BinaryCrossEntropyLoss(model)).train()
