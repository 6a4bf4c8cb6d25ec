from sarasa.config import Config, Data, LRScheduler, Model, Train
config = Config(
    model=Model(num_layers=24),
    train=Train(local_batch_size=6, global_batch_size=192, dtype="bfloat16", steps=20000, use_fsdp=True),
    data=Data(tokenizer_path="./tok", seq_len=4096, num_workers=3),
    seed=3,
)
