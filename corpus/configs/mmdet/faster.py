_base_ = ['../_base_/models/faster-rcnn_r50_fpn.py', '../_base_/default_runtime.py']
default_scope = 'mmdet'
train_dataloader = dict(batch_size=2, num_workers=4, dataset=dict(type='CocoDataset'))
optim_wrapper = dict(type='AmpOptimWrapper', accumulative_counts=2, optimizer=dict(type='SGD', lr=0.02, momentum=0.9))
