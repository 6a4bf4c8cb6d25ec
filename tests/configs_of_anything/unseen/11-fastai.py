from fastai.vision.all import *

path = untar_data(URLs.PETS)
dls = ImageDataLoaders.from_name_func(path, get_image_files(path / "images"), label, item_tfms=Resize(460), bs=40, num_workers=3)
learn = vision_learner(dls, resnet50, metrics=error_rate).to_fp16()
learn.fine_tune(5, base_lr=2e-3)
