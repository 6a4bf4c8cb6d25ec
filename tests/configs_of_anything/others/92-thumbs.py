from concurrent.futures import ThreadPoolExecutor
from PIL import Image

IMAGE_SIZE = 256
NUM_WORKERS = 8
BATCH_SIZE = 32

def thumb(path):
    Image.open(path).resize((IMAGE_SIZE, IMAGE_SIZE)).save(path + ".thumb.jpg")
