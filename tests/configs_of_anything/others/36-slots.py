slots_per_epoch = 32
target_batch_size = 16
epochs_per_committee = 256
workers = 4
