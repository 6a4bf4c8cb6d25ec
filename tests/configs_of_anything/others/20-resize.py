import argparse
from multiprocessing import Pool

from PIL import Image

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=800)
parser.add_argument("--height", type=int, default=600)
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--num-workers", type=int, default=8)
args = parser.parse_args()
with Pool(args.num_workers) as pool:
    pool.map(Image.open, [])
