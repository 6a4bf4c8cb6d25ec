import pandas as pd

frame = pd.read_csv("sales.csv", chunksize=10000)
precision = 2
resolution = "D"
n_samples = 500
total = sum(part.amount.sum() for part in frame)
print(round(total, precision))
