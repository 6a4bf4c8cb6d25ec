models=("meta-llama/Llama-2-13b-hf" "Qwen/Qwen2.5-7B")
gpu_memory_utilizations=(0.9 0.8)
request_rates=(1 2 4)
tensor_parallel_size=2
max_num_seqs=256
gpu_id=0,1

for i in "${!models[@]}"; do
    model="${models[$i]}"
    gpu_memory_utilization="${gpu_memory_utilizations[$i]}"
    model_name=$(echo "$model" | tr '/' '_')
    for request_rate in ${request_rates[@]}; do
        CUDA_VISIBLE_DEVICES=${gpu_id} python3 -m vllm.entrypoints.openai.api_server \
            --model ${model} \
            --port 8080 \
            --tensor-parallel-size ${tensor_parallel_size} \
            --swap-space 4 \
            --gpu-memory-utilization ${gpu_memory_utilization} \
            --max-num-seqs ${max_num_seqs} \
            --disable-log-requests > server.log 2>&1 &
            # > logs/${model_name}.log &
            #
        pid=$!
        sleep 5
        python3 bench.py --model ${model} --port 8080 --request-rate ${request_rate} --save-result
        kill $pid
    done
done
