#!/bin/bash
python3 -m sglang.launch_server --model-path Qwen/Qwen2.5-VL-7B-Instruct --mem-fraction-static 0.88 --port 30000
