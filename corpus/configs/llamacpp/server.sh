#!/bin/bash
llama-server -m /models/qwen2.5-32b-instruct-q4_k_m.gguf -ngl 99 -c 32768 -ub 1024 --parallel 4 \
  -fa on --cache-type-k q8_0 --cache-type-v q8_0 --host 0.0.0.0 --port 8080
