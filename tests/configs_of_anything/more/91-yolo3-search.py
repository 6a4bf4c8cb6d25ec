_base_ = ['yolov3_train.py']
total_epochs = 20
batch_size = 9
use_batchnorm_tuning = True
batchnorm_tuning_iter_num = 200
data = dict(samples_per_gpu=batch_size, workers_per_gpu=3)
optimizer = dict(type='SGD', lr=0.0001, momentum=0.0)
runner = dict(type='EpochBasedRunner', max_epochs=total_epochs)
scheduler = dict(type='CosineAnnealingLR')
