#!/bin/bash
python3 sample_video.py --video-size 720 1280 --video-length 129 --infer-steps 50 --prompt "a cat on the grass" --flow-reverse --use-cpu-offload
