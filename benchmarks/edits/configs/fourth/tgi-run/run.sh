model=meta-llama/Llama-3.3-70B-Instruct
docker run --gpus '"device=0,1,2,3"' --shm-size 1g -p 8080:80 -v $PWD/data:/data \
    ghcr.io/huggingface/text-generation-inference:3.3.4 \
    --model-id $model --num-shard 4 --max-input-tokens 16000 --max-total-tokens 18000 --max-batch-prefill-tokens 16000
