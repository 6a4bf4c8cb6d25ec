trtllm-serve Qwen/Qwen3-32B --tp_size 2 --max_batch_size 64 --max_num_tokens 8192 --max_seq_len 16384 --kv_cache_free_gpu_memory_fraction 0.85
