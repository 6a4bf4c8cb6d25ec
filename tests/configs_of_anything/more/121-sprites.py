"""Settings of a small diffusion model for sprites."""


class SpriteSettings:
    noise_levels = 800
    train_batch_size = 96
    eval_batch_size = 3  # pictures that are drawn after an epoch
    num_epochs = 300
    gradient_accumulation_steps = 2
    learning_rate = 2e-4
    lr_warmup_steps = 400
    mixed_precision = "fp16"
    seed = 7
