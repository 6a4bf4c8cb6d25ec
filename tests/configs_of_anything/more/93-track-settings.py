# Training configuration parameters
BATCH_SIZE = 18
EPOCHS = 50
IMG_SIZE = 608
DEVICE = "cuda"
MODEL_NAME = "yolov8n"
DATA_ROOT = "../data"
