import torch


class ObjectDetectorTrainConfig:
    def __init__(self, train_image_folder, output_dir, resume=True, max_iter=200, num_workers=7, ims_per_batch=6, base_lr=0.01, batch_size_per_image=50):
        self.train_image_folder = train_image_folder
