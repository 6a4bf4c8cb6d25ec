python3 zipformer/train.py --world-size 2 --use-bf16 1 --use-fp16 0 --max-duration 600 --num-workers 4
