accelerate launch --num_cpu_threads_per_process 8 train.py \
dataset.params.num_workers=9 num_workers=9 buffer_size=8 eval_overlap=0.1 \
data=task3 data.root=/workspace/Task03 \
optimizer.params.lr=1.0e-2 \
batch_size.train=3 batch_size.val=6 accumulation_steps=2 val_freq=10
