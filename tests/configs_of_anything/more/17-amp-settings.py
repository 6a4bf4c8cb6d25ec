tag = "run3"
enable_amp = True
dtype = "bf16"  # float32 fp16 bf16

num_gpus = 3
image_size = 448
batch_size_per_gpu = 11
total_batch_size = batch_size_per_gpu * num_gpus
print_freq = 10
seed = 11
compile = False
num_max_save_models = 4
use_gradient_ckpt = True
use_ema = True
ema_beta = 0.9
learning_rate = 1e-4
