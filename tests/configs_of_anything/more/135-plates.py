import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
NB_EPOCHS = 4
BATCH_SIZE = 6
IMAGE_SIZE = 448
TRAIN_IMAGES = "plates/train/"
TEST_IMAGES = "plates/test/"
