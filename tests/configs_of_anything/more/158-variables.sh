SAVE_DIR=./out/train_13b

shape=(8,8,8)
num_gpus=4
full_batch_size=96 # rows of one step
batch_size=6 # rows of one card
steps=$[$rows/($batch_size*$num_gpus)]
gradient_accumulation_steps=$[$full_batch_size/($batch_size*$num_gpus)]
