CUDA_VISIBLE_DEVICES=0 trl vllm-serve --model Qwen/Qwen2.5-7B-Instruct --tensor_parallel_size 1 &
CUDA_VISIBLE_DEVICES=1,2,3 accelerate launch --num_processes 3 train.py
