workers ENV.fetch("WEB_CONCURRENCY", 2)
threads 5, 5
preload_app!
port 3000
