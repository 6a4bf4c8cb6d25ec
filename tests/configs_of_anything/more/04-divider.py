import torch


class TrainSettings:
    def __init__(self):
        self.cuda = True

        # first epochs
        # self.batch_size = 2
        # self.use_amp = False

        self.batch_size = 48
        self.batch_size_divider = 6  # gradient accumulation
        self.use_amp = True

        self.learning_rate = 0.02
        self.optimizer_beta1 = 0.9
        self.optimizer_beta2 = 0.999
        self.epochs = 80
        self.with_teacher = False
        self.amp_scale = 2.0**8
