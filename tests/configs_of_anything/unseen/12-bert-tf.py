import os

import tensorflow as tf
from transformers import AutoTokenizer, TFAutoModelForSequenceClassification

MODEL_NAME = "bert-large-uncased"
MAX_LEN = 384
BATCH_SIZE = 10
LEARNING_RATE = 3e-5
tf.keras.mixed_precision.set_global_policy("mixed_float16")
tokenizer = AutoTokenizer.from_pretrained(MODEL_NAME)
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = TFAutoModelForSequenceClassification.from_pretrained(MODEL_NAME, num_labels=3)
    model.compile(optimizer=tf.keras.optimizers.Adam(LEARNING_RATE))
train = make(tokenizer, MAX_LEN).shuffle(2048).batch(BATCH_SIZE)
model.fit(train, epochs=3)
