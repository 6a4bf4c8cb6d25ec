from ml_collections import ConfigDict


def get_config():
    config = ConfigDict()
    config.fabric = dict(accelerator="auto", precision="16-mixed")
    config.model = dict(num_layers=3, hidden_dim=1024, variant="blockwise")
    config.train = dict(lr=2e-3, max_epochs=90)
    config.data = dict(train_batch_size=384, val_batch_size=640, train_size=2048, val_size=4096)
    return config
