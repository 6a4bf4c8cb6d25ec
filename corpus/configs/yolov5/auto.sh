python yolov5/train.py --imgsz 960 --batch-size -1 --data data/custom.yaml --weights yolov5s.pt --optimizer Adam
