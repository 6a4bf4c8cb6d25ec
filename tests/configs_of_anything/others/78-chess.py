import argparse

parser = argparse.ArgumentParser(description="play against an engine")
parser.add_argument("--depth", type=int, default=12)
parser.add_argument("--threads", type=int, default=4)
parser.add_argument("--hash", type=int, default=256)
args = parser.parse_args()
