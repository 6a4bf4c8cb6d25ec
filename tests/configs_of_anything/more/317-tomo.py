from dataclasses import dataclass


@dataclass
class TrainingConfig:
    image_size = 256  # the generated image resolution
    lr_image_size = 64
    train_batch_size = 16
    eval_batch_size = 1  # how many images to sample during evaluation
    num_epochs = 50
    gradient_accumulation_steps = 1
    learning_rate = 1e-4
    lr_warmup_steps = 500
    mixed_precision = 'fp16'
    output_dir = 'tomo-128'
    seed = 42
    num_train_timesteps = 1000


config = TrainingConfig()
