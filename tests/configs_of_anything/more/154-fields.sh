# python train.py --width 256 --height 256 --batch_size 30 --max_epochs 10 --num_workers 9 --gpus 0
python train.py --backbone resnet_tall --width 640 --height 480 --batch_size 11 --max_epochs 45 --num_workers 9 --gpus 0,3 --use_aug
