#!/bin/bash
lmdeploy serve api_server Qwen/Qwen2.5-VL-7B-Instruct --server-port 23333 --tp 1 --session-len 32768 --cache-max-entry-count 0.95
