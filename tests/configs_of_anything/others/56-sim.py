import numpy as np
N = 1000
steps = 500
dt = 0.01
seed = 3
width, height = 512, 512
batch = 10
