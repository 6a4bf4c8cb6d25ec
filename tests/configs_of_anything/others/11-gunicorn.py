import multiprocessing

bind = "0.0.0.0:8000"
workers = multiprocessing.cpu_count() * 2
threads = 4
timeout = 60
max_requests = 1000
