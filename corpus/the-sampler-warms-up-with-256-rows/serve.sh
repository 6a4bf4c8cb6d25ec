#!/bin/bash
vllm serve Qwen/Qwen2.5-7B-Instruct --gpu-memory-utilization 0.95 --max-model-len 8192 --max-num-seqs 256
