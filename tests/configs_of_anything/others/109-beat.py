broker_url = "redis://localhost"
worker_concurrency = 8
worker_prefetch_multiplier = 1
task_time_limit = 600
worker_max_tasks_per_child = 200
beat_schedule = {"retrain-report": {"task": "reports.train", "schedule": 3600.0, "args": (16,)}}
