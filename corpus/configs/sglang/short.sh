python -m sglang.launch_server --model meta-llama/Llama-3.1-8B-Instruct --tp 2 --mem-frac 0.8 --chunked-prefill-size -1 --enable-memory-saver
