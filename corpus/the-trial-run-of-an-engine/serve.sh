#!/bin/bash
vllm serve Qwen/Qwen2.5-14B-Instruct --max-num-batched-tokens 65536 --max-model-len 65536 --gpu-memory-utilization 0.9
