from dataclasses import dataclass


@dataclass
class Settings:
    image_size = 320  # of what is drawn
    lr_image_size = 80
    train_batch_size = 12
    eval_batch_size = 2
    num_epochs = 60
    gradient_accumulation_steps = 1
    learning_rate = 1e-4
    lr_warmup_steps = 300
    mixed_precision = "bf16"
    output_dir = "tomo"
