from datasets import load_dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.losses import MultipleNegativesRankingLoss

model = SentenceTransformer("intfloat/multilingual-e5-large")
pairs = load_dataset("json", data_files="pairs.jsonl", split="train")
args = SentenceTransformerTrainingArguments(
    output_dir="out", num_train_epochs=1, per_device_train_batch_size=64, learning_rate=2e-5, bf16=True,
    batch_sampler="no_duplicates",
)
SentenceTransformerTrainer(model=model, args=args, train_dataset=pairs, loss=MultipleNegativesRankingLoss(model)).train()
