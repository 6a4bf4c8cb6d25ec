#SGLANG_X=1 \
FLASHINFER_DISABLE_VERSION_CHECK=1 \
CUDA_VISIBLE_DEVICES=4 \
python3 -m sglang.launch_server --model-path /data/models/A-10B \
 --tokenizer-path Qwen/Qwen3-VL-8B-Instruct \
 --port 30000 \
 --tp 1 \
 --disable-cuda-graph \
 --attention-backend triton  
# --tokenizer-path Qwen/Qwen3-VL-8B-Instruct \
# --skip-server-warmup 
 # flashinfer good
