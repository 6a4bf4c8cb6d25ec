# python3 train.py --raw --epochs 2 --batch_size 10 --stride 768
python3 train.py --epochs 3 --device cuda --batch_size 6 --gradient_accumulation 3 --lr 5e-05 --num_pieces 100 --output_dir out/
