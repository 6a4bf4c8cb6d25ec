import tensorflow as tf
from tensorflow import keras
IMG_H, IMG_W = 384, 512
BATCH_SIZE = 9
EPOCHS = 40
keras.mixed_precision.set_global_policy("mixed_bfloat16")
model.compile(optimizer=keras.optimizers.Adam(1e-4), loss="bce")
