# training config
n_step = 800000
gradient_accumulate_every = 3
lr = 5e-5
decay = 0.9
optimizer = "adam"  # adamw or adam
n_workers = 6
# diffusion
pred_mode = 'noise'
sample_steps = 400
data_config = {"dataset_name": "vimeo", "data_path": "*", "sequence_length": 1, "img_size": 320, "img_channel": 3}
batch_size = 5
