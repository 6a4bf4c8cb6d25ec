#!/bin/bash
export CUDA_LAUNCH_BLOCKING=1

python3 sample_video.py \
    --video-size 544 960 \
    --video-length 97 \
    --infer-steps 40 \
    --prompt "A dog walks on the beach." \
    --seed 7 \
    --embedded-cfg-scale 6.0 \
    --flow-shift 7.0 \
    --use-cpu-offload \
    --save-path ./results
