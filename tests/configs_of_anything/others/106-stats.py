import redis

BATCH_SIZE = 2000
NUM_WORKERS = 4
MAX_LENGTH = 10000
MODEL = "daily"
client = redis.Redis(decode_responses=True)


def run():
    pipe = client.pipeline(transaction=False)
    for key in client.scan_iter(count=BATCH_SIZE):
        pipe.xlen(key)
