uv run scripts/train.py pi05_droid --exp-name my --fsdp-devices 4 --num-workers 8
