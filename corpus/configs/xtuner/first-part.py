# made for this test: what reports quote of a configuration
pretrained_model_name_or_path = 'internlm/internlm2-chat-20b'
max_length = 8192
pack_to_max_length = True
batch_size = 1  # per_device
accumulative_counts = 16
dataloader_num_workers = 0
