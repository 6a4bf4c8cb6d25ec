import jax.numpy as jnp
from ml_collections import ConfigDict
def get_default_config():
    DATA_CONFIG = ConfigDict(dict(batch_size=96, num_classes=10))
    MODEL_CONFIG = ConfigDict(dict(hidden_size=768, dropout_rate=0.1, dtype=jnp.bfloat16, remat=True))
    OPTIMIZER_CONFIG = ConfigDict(dict(learning_rate=1e-3, num_minibatches=4))
    return ConfigDict(dict(model=MODEL_CONFIG, data=DATA_CONFIG, optimizer=OPTIMIZER_CONFIG))
