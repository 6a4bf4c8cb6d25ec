#!/bin/bash
# what every run of it takes

TRAIN_ARGS="
--epochs 120
--batch-size 144
--learning-rate 3e-4
--padding-mode border
"
