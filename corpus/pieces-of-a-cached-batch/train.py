from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.losses import CachedMultipleNegativesRankingLoss

model = SentenceTransformer("BAAI/bge-base-en-v1.5")
model.max_seq_length = 256
loss = CachedMultipleNegativesRankingLoss(model, mini_batch_size=1024)
args = SentenceTransformerTrainingArguments(output_dir="out", per_device_train_batch_size=4096, fp16=True)
SentenceTransformerTrainer(model=model, args=args, train_dataset=pairs, loss=loss).train()
