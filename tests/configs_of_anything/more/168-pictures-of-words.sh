python3 train_pictures.py --text_seq_len 96 --batch_size 9 --epochs 3 \
--learning_rate 0.0004 --depth 6 \
--cuda cuda:1 \
--hug
