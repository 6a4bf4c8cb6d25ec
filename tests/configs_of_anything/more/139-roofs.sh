python train.py --gpus=3 \
 --train_data_dir ~/data/roofs \
 --model SomeUnet \
 --precision 16 \
 --batch_size 20 \
 --epochs 18 \
 --learning_rate 0.0002 \
 --optimizer adamw \
 --img_size 448
