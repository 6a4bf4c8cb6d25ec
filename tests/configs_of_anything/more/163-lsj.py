_base_ = ["../_base_/models/net.py"]
image_size = (896, 896)
batch_augments = [dict(type="PadTogether", size=image_size)]
train_dataloader = dict(batch_size=6, num_workers=5)
optim_wrapper = dict(type="AmpOptimWrapper", optimizer=dict(type="SGD", lr=0.01, momentum=0.9))
auto_scale_lr = dict(base_batch_size=48)
