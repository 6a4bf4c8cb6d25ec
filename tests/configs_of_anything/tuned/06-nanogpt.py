# settings of the small model; they replace those of the training script
out_dir = "out-poems"
eval_interval = 250
eval_iters = 200
log_interval = 10
dataset = "poems"
gradient_accumulation_steps = 40
batch_size = 12
block_size = 1024
n_layer = 12
n_head = 12
n_embd = 768
learning_rate = 6e-4
max_iters = 60000
dtype = "bfloat16"
compile = True
