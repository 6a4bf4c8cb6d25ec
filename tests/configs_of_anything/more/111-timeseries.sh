for pred_len in 96 192
do
python -u run_longExp.py --is_training 1 --model PatchTST --data custom \
  --seq_len 336 --pred_len $pred_len --enc_in 321 --e_layers 3 --n_heads 16 --d_model 128 \
  --des 'Exp' --train_epochs 100 --itr 1 --batch_size 24 --learning_rate 0.0001 --num_workers 5 --use_amp
done
