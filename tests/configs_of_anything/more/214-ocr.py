#common
imgW = 896
imgH = 64
alphabet_path = 'data/char'
#train
pretrained=''
gpu_train = '0,1'
base_lr = 0.0005
max_epoches = 100
workers_train = 7
batch_size = 40
#test
workers_test=3
batch_size_test=8
