import ray
import torch
from mylab.ppo import Algorithm

config_ppo = {
    "train_batch_size": 4000,
    "minibatch_size": 128,
    "gamma": 0.99,
    "lr": 3e-4,
    "num_epochs": 5,
    "num_env_runners": 8,
    "num_gpus": 1,
    "use_amp": True,
}
ray.init()
algo = Algorithm(config_ppo, device=torch.device("cuda"))
while algo.iteration < 1000:
    print(algo.train())
