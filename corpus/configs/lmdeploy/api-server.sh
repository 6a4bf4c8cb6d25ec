lmdeploy serve api_server OpenGVLab/InternVL3-38B --backend turbomind --tp 4 --session-len 16384 \
  --cache-max-entry-count 0.5 --max-batch-size 64 --server-port 23333
