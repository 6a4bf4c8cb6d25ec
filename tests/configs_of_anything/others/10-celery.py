broker_url = "redis://localhost:6379/0"
worker_concurrency = 8
worker_prefetch_multiplier = 1
task_time_limit = 300
batch_size = 100
