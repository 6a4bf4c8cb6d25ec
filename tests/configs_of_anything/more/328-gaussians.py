from argparse import ArgumentParser

class OptimizationParams:
    def __init__(self, parser):
        self.iterations = 30_000
        self.position_lr_init = 0.00016
        self.position_lr_final = 0.0000016
        self.feature_lr = 0.0025
        self.opacity_lr = 0.05
        self.densification_interval = 100
        self.densify_until_iter = 15_000
        self.densify_grad_threshold = 0.0002
