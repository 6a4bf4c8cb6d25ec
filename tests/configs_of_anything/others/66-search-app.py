from flask import Flask
app = Flask(__name__)
PAGE_SIZE = 20
MAX_LENGTH = 300
EMBED_BATCH_SIZE = 32
NUM_WORKERS = 2
