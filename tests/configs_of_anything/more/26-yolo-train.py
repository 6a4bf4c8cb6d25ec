from ultralytics import YOLO

model = YOLO("yolov8m-seg.pt")

batch_size = 10
num_epochs = 20
learning_rate = 0.001

model.train(
    data="config.yaml",
    epochs=num_epochs,
    imgsz=896,
    batch=batch_size,
    lr0=learning_rate,
    workers=3,
    amp=False,
)
