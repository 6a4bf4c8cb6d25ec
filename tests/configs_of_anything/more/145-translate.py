settings = {
    "batch_size": 28,
    "distributed": False,
    "num_epochs": 11,
    "iterations_to_accumulate": 6,
    "base_learning_rate": 0.7,
    "max_padding": 80,
    "warmup": 2500,
}
