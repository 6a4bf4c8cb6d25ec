CUDA_VISIBLE_DEVICES=1 lmdeploy serve api_server Qwen/Qwen2.5-7B-Instruct --backend pytorch --eager-mode --max-prefill-token-num 4096
