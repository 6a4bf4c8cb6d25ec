port=7997
gte_rerank_model=Alibaba-NLP/gte-multilingual-reranker-base
volume=$PWD/data

docker run -it --gpus all \
-v $volume:/app/.cache \
-p $port:$port \
michaelf34/infinity:latest \
v2 \
--batch-size 32 \
--model-id $gte_rerank_model \
--port $port 
