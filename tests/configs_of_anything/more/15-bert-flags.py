from absl import app, flags
import tensorflow as tf

FLAGS = flags.FLAGS
flags.DEFINE_string("input_data_dir", None, "")
flags.DEFINE_integer("train_batch_size", 36, "Batch size for training.")
flags.DEFINE_integer("eval_batch_size", 64, "Batch size for evaluation.")
flags.DEFINE_integer("max_seq_length", 448, "Longest row.")
flags.DEFINE_boolean("use_fp16", True, "Mixed precision")
flags.DEFINE_float("learning_rate", 5e-5, "")
flags.DEFINE_integer("num_train_epochs", 3, "")


def main(_):
    strategy = tf.distribute.MirroredStrategy()


if __name__ == "__main__":
    app.run(main)
