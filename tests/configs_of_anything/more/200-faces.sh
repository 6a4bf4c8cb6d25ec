python train.py \
--gpus 2 \
--batch_size 384 \
--log_name arc \
--check_val_every_n_epoch 50 \
--max_epochs 800 \
--num_workers 11 \
--input_size 112 --precision 16-mixed
