from dataclasses import dataclass

@dataclass
class TrainingConfig:
    image_size = 128*4 # the generated image resolution
    train_batch_size = 2 # 1
    eval_batch_size = 3*3  # how many images to sample during evaluation
    num_epochs = 500
    gradient_accumulation_steps = 1
    learning_rate = 1e-4
    mixed_precision = "fp16"
    output_dir = "concrete_generation"
