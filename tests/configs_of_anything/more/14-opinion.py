from transformers import BertTokenizer


class Config:
    def __init__(
        self,
        model_type,
        model_name_or_path="hfl/chinese-roberta-wwm-ext",
        max_seq_length=192,
        batch_size=10,
        learning_rate=5e-5,
        adam_epsilon=1e-8,
        num_train_epochs=3,
        doc_stride=128,
        seed=42,
        fp16=True,
    ):
        self.model_type = model_type
        self.max_seq_length = max_seq_length
        self.batch_size = batch_size
