common_config = {'data_dir': 'OCR/d', 'img_width': 768, 'img_height': 48, 'map_to_seq_hidden': 256, 'leaky_relu': False}
train_config = {'epochs': 500, 'train_batch_size': 56, 'eval_batch_size': 2, 'lr': 0.00005, 'show_interval': 10, 'cpu_workers': 10, 'reload_checkpoint': None, 'beam_size': 10}
train_config.update(common_config)
