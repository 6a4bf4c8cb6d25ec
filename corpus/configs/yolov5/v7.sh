python yolov7/train.py --workers 2 --batch-size 16 --data data/custom.yaml --img 1280 1280 --cfg cfg/training/yolov7-w6.yaml --weights '' --hyp data/hyp.scratch.p6.yaml
