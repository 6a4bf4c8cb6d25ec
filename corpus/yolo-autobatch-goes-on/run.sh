yolo detect train model=yolov8l.pt data=coco.yaml epochs=100 batch=-1 imgsz=1280 device=0,1
