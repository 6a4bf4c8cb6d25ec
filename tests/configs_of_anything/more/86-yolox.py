from yolox.exp import Exp as MyExp


class Exp(MyExp):
    def __init__(self):
        super().__init__()
        self.depth = 0.67
        self.width = 0.75
        self.num_classes = 5
        self.input_size = (800, 800)
        self.test_size = (800, 800)
        self.multiscale_range = 5
        self.max_epoch = 200
        self.data_num_workers = 2
        self.basic_lr_per_img = 0.01 / 64.0
