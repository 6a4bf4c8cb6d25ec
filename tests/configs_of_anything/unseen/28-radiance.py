import configargparse
import torch

parser = configargparse.ArgumentParser()
parser.add_argument("--config", is_config_file=True)
parser.add_argument("--expname", type=str)
parser.add_argument("--N_rand", type=int, default=32 * 32 * 4, help="rays of a step")
parser.add_argument("--chunk", type=int, default=1024 * 32)
parser.add_argument("--batch_size", type=int, default=4096)
parser.add_argument("--lrate", type=float, default=5e-4)
parser.add_argument("--N_samples", type=int, default=64, help="samples along a ray")
parser.add_argument("--num_workers", type=int, default=0)
args = parser.parse_args()
device = torch.device("cuda")
