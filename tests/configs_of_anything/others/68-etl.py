import psycopg2

BATCH_SIZE = 5000
NUM_WORKERS = 8
MAX_LENGTH = 255
DTYPE = "float32"

def load(rows):
    for start in range(0, len(rows), BATCH_SIZE):
        cursor.executemany("insert into readings values (%s, %s)", rows[start:start + BATCH_SIZE])
