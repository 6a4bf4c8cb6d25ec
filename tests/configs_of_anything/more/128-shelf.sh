#!/usr/bin/sh

start_from="medium.pt"
workers=6
image_size=416
batch_size=24
epochs=120

cd detector/
/bin/python3 train.py --img $image_size --batch $batch_size --epochs $epochs --data ../shelf.yml --weights $start_from --workers $workers
