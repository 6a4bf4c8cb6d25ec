import ml_collections
def get_config():
  config = ml_collections.ConfigDict()
  config.learning_rate = 3.5e-4
  config.batch_size = 1024
  config.eval_batch_size = 256
  config.half_precision = True
  config.num_epochs = 90.0
  config.image_size = 176
  return config
