grad_checkpoint = True

# Acceleration settings
plugin = "zero2"
wandb = True
gradient_accumulation_steps = 2
report_to = "wandb"
mixed_precision = "bf16"

# Training settings
grad_clip = 1.0
lr = 1e-4
adam_eps = 1e-8
warmup_steps = 1000
use_8bit_adam = True
max_train_steps = int(2e6)
checkpointing_steps = 2500

# Dataset settings
imagenet_data_path = "/mnt/images.zip"
num_workers = 4
batch_size = 192
