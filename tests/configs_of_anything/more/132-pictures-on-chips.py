import jax
from configs import base as base_config


def get_config():
    config = base_config.get_config()
    config.batch_size = 192 * jax.device_count()
    config.half_precision = True
    config.num_epochs = 4
    config.learning_rate = 0.1
    return config
