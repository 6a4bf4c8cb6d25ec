import ml_collections


def get_config():
    config = ml_collections.ConfigDict()
    config.learning_rate = 3e-4
    config.momentum = 0.9
    config.batch_size = 72
    config.half_precision = False
    config.num_train_steps = -1
    config.data_shape = [64, 64, 3]
    config.num_classes = 20
    return config
