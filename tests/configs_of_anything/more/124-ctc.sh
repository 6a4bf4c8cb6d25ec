#!/usr/bin/bash
cd ../..

CUDA_VISIBLE_DEVICES=0,1,2,3,4,5 \
python -u train.py \
--batch_size=192 \
--trainer_count=6 \
--num_passes=30 \
--num_conv_layers=2 \
--rnn_layer_size=1536 \
--learning_rate=4e-4 \
--max_duration=24.0 \
--use_gpu=True \
--train_manifest='lists/train' \
--output_model_dir='./out'
