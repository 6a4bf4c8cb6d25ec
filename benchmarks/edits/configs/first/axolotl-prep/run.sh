#!/bin/bash
python -c "import axolotl; print(axolotl.__version__)"
python scripts/prepare_data_for_axolotl.py --max_len 4096 --micro_batch_size 8
accelerate launch -m axolotl.cli.train full.yml
