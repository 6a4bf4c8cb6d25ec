lmdeploy serve api_server /models/DeepSeek-R1-Distill-Llama-70B --tp 1 --server-port 23333
