import argparse

class TrainOptions():
    def __init__(self):
         self.parser = argparse.ArgumentParser(description='PyTorch Training')
         self.parser.add_argument('--state', default='train', help='train or eval')
         self.parser.add_argument('--gpu', default=1, help='gpu')
         self.parser.add_argument('--traindata', default='./dataset')
         self.parser.add_argument('--batchsize', default=16, help='batch')
         self.parser.add_argument('--epoch', default=2)
         self.parser.add_argument('--lr', default=1e-4)
