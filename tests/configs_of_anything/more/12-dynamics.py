from omegaconf import OmegaConf

train_cfg_dict = {
    "model_batch_size": 1536,
    "validation_ratio": 0.1,
    "shuffle": True,
    "num_epochs_train_model": 3000,
    "patience": 300,
    "lr": 1e-3,
    "weight_decay": 5e-5,
    "target_is_delta": True,
}
train_cfg = OmegaConf.create(train_cfg_dict)
