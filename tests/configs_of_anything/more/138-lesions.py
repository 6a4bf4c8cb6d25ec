class ModelSettings:
    name = "torchvision.masks"
    backbone = "resnet34"
    input_size = (480, 320)
    output_size = 5
    pretrained = True


class DataloaderSettings:
    batch_size = 3
    num_workers = 2
    cuda = True


class OptimizerSettings:
    epochs = 40
    type = "sgd"
    momentum = 0.9
    base_lr = 0.002
    weight_decay = 0.0001
