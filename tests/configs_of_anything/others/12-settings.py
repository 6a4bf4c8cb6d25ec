from pathlib import Path

BASE_DIR = Path(__file__).parent
DEBUG = False
INSTALLED_APPS = ["shop", "accounts"]
DATABASES = {"default": {"ENGINE": "postgresql", "NAME": "shop", "CONN_MAX_AGE": 600}}
DATA_UPLOAD_MAX_MEMORY_SIZE = 5242880
MAX_LENGTH = 255
