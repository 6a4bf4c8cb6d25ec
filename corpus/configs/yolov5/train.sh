python train.py --img 640 --batch 64 --epochs 300 --data coco128.yaml --weights yolov5x.pt
