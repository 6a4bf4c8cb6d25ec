from absl import flags
FLAGS = flags.FLAGS
flags.DEFINE_integer("train_batch_size", 44, "")
flags.DEFINE_integer("max_seq_length", 640, "")
flags.DEFINE_integer("eval_batch_size", 11, "")
flags.DEFINE_string("bert_model", "bert-base-uncased", "")
flags.DEFINE_boolean("use_bf16", True, "")
flags.DEFINE_integer("num_accumulation_steps", 2, "")
import jax
