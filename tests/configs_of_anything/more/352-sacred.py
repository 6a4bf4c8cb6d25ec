from sacred import Experiment

from helpers import to_dict

ex = Experiment()


@ex.config
def contrastive():
    description = "pairs"

    @to_dict
    class train_dataset_args:
        seq_len = 96

    @to_dict
    class dataloader_args:
        batch_size = 24
        num_workers = 5

    @to_dict
    class trainer_args:
        max_epochs = 80


# @ex.config
def older():
    description = "with padding"

    @to_dict
    class train_dataset_args:
        seq_len = 192

    @to_dict
    class dataloader_args:
        batch_size = 72
        num_workers = 5


@ex.named_config
def tiny():
    batch_size = 2
