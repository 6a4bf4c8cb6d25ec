python test_inference.py --model_dir /models/llama-70b-exl2 --gpu_split 20,22 --length 16384 -p "Hello"
