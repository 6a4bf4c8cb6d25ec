import os

# settings of the detector: cfg\training\wheels.yaml
os.system("cd detector/ && py train.py --workers 3 --batch-size 14 --epochs 70 --img 512 512 --weights start.pt")
