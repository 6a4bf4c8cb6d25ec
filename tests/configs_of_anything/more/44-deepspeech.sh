#! /usr/bin/bash
CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 \
python -u train.py \
--batch_size=200 \
--trainer_count=8 \
--num_passes=50 \
--num_proc_data=10 \
--num_conv_layers=2 \
--num_rnn_layers=3 \
--rnn_layer_size=2048 \
--learning_rate=5e-4 \
--max_duration=27.0 \
--use_gru=False \
--use_gpu=True
