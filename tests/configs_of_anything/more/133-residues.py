import copy

import ml_collections

FLAGS_OF_ALL = {
    "sharding": True,
    "bf16_flag": True,
    "jax_small": 1e-5,
    "remat_flag": True,
    "use_dropout": False,
    "global_dropout_rate": 0.0,
}
FLAGS_OF_ALL = ml_collections.ConfigDict(copy.deepcopy(FLAGS_OF_ALL))
