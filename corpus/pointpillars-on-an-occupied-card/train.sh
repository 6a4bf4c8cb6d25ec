python train.py --cfg_file=cfgs/kitti_models/pointpillar.yaml --batch_size=2
