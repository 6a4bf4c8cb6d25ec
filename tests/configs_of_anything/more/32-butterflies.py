from dataclasses import dataclass


@dataclass
class TrainingConfig:
    image_size = 320  # the generated image resolution
    lr_image_size = 80
    train_batch_size = 14
    eval_batch_size = 4  # how many images to sample during evaluation
    num_epochs = 50
    gradient_accumulation_steps = 3
    learning_rate = 1e-4
    lr_warmup_steps = 500
    mixed_precision = "fp16"
    output_dir = "out"
    num_train_timesteps = 1000


config = TrainingConfig()
