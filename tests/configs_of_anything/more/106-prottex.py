import ml_collections

GLOBAL_CONFIG = {"sharding": True, "bf16_flag": True, "remat_flag": True, "use_dropout": False}
TRAIN_CONFIG = {"batch_size": 12, "accumulate_steps": 2, "learning_rate": 1e-4, "max_length": 800}
GLOBAL_CONFIG = ml_collections.ConfigDict(GLOBAL_CONFIG)
