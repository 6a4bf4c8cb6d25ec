broker_url = "redis://x"
worker_concurrency = 8
worker_prefetch_multiplier = 4
task_queues = ["a"]
batch_size = 100
