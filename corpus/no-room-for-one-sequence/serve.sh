#!/bin/bash
trl vllm-serve --model Qwen/Qwen2.5-7B-Instruct --gpu_memory_utilization 0.85 --max_model_len 131072
