CUDA_VISIBLE_DEVICES=0,1 lmdeploy serve api_server hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4
