# python3 train.py --raw --epochs 2 --min_length 64 --batch_size 10 --stride 768

python3 train.py --epochs 2 --device cpu --batch_size 4 --gradient_accumulation 2 --lr 0.01 --num_pieces 100
