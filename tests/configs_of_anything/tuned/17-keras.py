import tensorflow as tf
from tensorflow import keras

IMG_SIZE = 456
BATCH_SIZE = 20
EPOCHS = 25
keras.mixed_precision.set_global_policy("mixed_float16")

train_ds = keras.utils.image_dataset_from_directory("train", image_size=(IMG_SIZE, IMG_SIZE), batch_size=BATCH_SIZE)
val_ds = keras.utils.image_dataset_from_directory("val", image_size=(IMG_SIZE, IMG_SIZE), batch_size=64)
base = keras.applications.EfficientNetB5(include_top=False, weights="imagenet")
model = keras.Sequential([base, keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(7)])
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
model.fit(train_ds, validation_data=val_ds, epochs=EPOCHS)
