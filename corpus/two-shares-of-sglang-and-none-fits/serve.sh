#!/bin/bash
python3 -m sglang.launch_server --model meta-llama/Llama-3.1-8B-Instruct --speculative-algorithm EAGLE \
  --speculative-draft-model-path a/EAGLE-LLaMA3-Instruct-8B --mem-fraction-static 0.84 --chunked-prefill-size 2048 --max-running-requests 16 --port 8000
