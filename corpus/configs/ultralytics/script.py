from ultralytics import YOLO

if __name__ == "__main__":
    model = YOLO("yolo11m.pt")
    model.train(data="coco.yaml", epochs=100, imgsz=1024, batch=8, workers=4, amp=False)
