yolo segment train data=leaves.yaml model=yolov8x-seg.pt imgsz=1280 batch=32 optimizer=AdamW
