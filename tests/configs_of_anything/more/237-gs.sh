python train.py -s data/garden -m out/garden --iterations 30000 --resolution 1600 --densify_grad_threshold 0.0002 --data_device cpu
