from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.losses import MultipleNegativesRankingLoss

model = SentenceTransformer("Qwen/Qwen3-Embedding-4B", model_kwargs={"torch_dtype": "bfloat16"})
args = SentenceTransformerTrainingArguments(
    output_dir="emb",
    num_train_epochs=1,
    per_device_train_batch_size=128,
    per_device_eval_batch_size=128,
    warmup_ratio=0.1,
    bf16=True,
    eval_strategy="steps",
    eval_steps=200,
)
SentenceTransformerTrainer(model=model, args=args, loss=MultipleNegativesRankingLoss(model)).train()
