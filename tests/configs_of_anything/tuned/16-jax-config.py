import ml_collections


def get_config():
    config = ml_collections.ConfigDict()
    config.seed = 42
    config.dtype = "bfloat16"
    config.remat = True
    config.optimizer = "adafactor"
    config.learning_rate = 1e-3
    config.num_train_steps = 100_000
    config.batch_size = 256
    config.eval_batch_size = 512
    config.data = ml_collections.ConfigDict()
    config.data.image_size = 224
    config.model = dict(num_layers=12, d_model=768)
    return config
