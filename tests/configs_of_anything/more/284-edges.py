train_config = {
    "data": "/p/data1/set/data_edge.yaml",
    "project": "MDP",
    "name": "yolo11n_fused_bs128",
    # training
    "model": "yolo11n.pt",
    "resume": None,
    "epochs": 100,
    "batch_size": 128,
    "img_size": 640,
    "optimizer": "auto",
    "workers": 12,
}
