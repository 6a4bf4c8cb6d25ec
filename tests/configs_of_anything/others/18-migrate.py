import argparse
import sqlite3

parser = argparse.ArgumentParser(description="move rows between data bases")
parser.add_argument("--batch-size", type=int, default=1000)
parser.add_argument("--workers", type=int, default=4)
parser.add_argument("--source", required=True)
args = parser.parse_args()
sqlite3.connect(args.source)
