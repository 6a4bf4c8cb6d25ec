token_num=24
token_len=64
seq_len=$[$token_num*$token_len]

python -u run.py \
  --is_training 1 \
  --seq_len $seq_len \
  --d_model 256 \
  --batch_size 20480 \
  --learning_rate 0.0002 \
  --train_epochs 6 \
  --devices 0,1,2
