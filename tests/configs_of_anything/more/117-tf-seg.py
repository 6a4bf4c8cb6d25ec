import tensorflow as tf

IMG_HEIGHT, IMG_WIDTH = 384, 512
BATCH_SIZE = 13
BUFFER_SIZE = 1000
tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
strategy = tf.distribute.MirroredStrategy()
optimizer = tf.keras.optimizers.Adam(1e-4)
