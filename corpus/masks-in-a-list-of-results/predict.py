predict_res = []

for item in np.array_split(sorted(glob.glob("/kaggle/working/data/val/images/*")), len(glob.glob("/kaggle/working/data/val/images/*"))):
    predict_res.extend(model.predict(item.tolist(), imgsz=512, conf=0.128, iou=0.7, half=True, save_conf=True, save=True, save_txt=True, show_labels=False))  
