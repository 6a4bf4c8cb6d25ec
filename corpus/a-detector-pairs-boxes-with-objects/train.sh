yolo detect train data=cells.yaml model=yolo11m.pt imgsz=960 batch=16 epochs=200
