python -m fastchat.serve.vllm_worker --model-path /LLMs/Qwen-72B-Chat --trust-remote-code --tensor-parallel-size 4 --dtype bfloat16 --enforce-eager
