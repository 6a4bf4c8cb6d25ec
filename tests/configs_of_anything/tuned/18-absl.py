import jax
from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_string("workdir", None, "where to write")
flags.DEFINE_integer("batch_size", 64, "Examples per host.")
flags.DEFINE_integer("seq_len", 768, "Tokens of one example.")
flags.DEFINE_float("learning_rate", 3e-4, "Peak.")
flags.DEFINE_bool("remat", True, "Recompute activations.")
flags.DEFINE_enum("precision", "bf16", ["fp32", "bf16"], "Type of the matmuls.")


def main(_):
    print(jax.device_count(), FLAGS.batch_size)


app.run(main)
