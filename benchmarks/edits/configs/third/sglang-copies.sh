export CUDA_VISIBLE_DEVICES=0,1,2,3
python3 -m sglang.launch_server --model-path Qwen/Qwen2.5-72B-Instruct --tp-size 2 --dp-size 2 --mem-fraction-static 0.88 --context-length 65536 --port 30000
