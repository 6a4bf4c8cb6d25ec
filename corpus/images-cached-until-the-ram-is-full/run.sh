python train.py --data traffic.yaml --weights yolov5m.pt --img 640 --batch-size 48 --epochs 80 --cache
