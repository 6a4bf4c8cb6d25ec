torchrun --standalone --nproc_per_node 4 loop.py \
    --model_config configs/tiny.json \
    --lr 0.002 \
    --batch_size 48 \
    --total_batch_size 384 \
    --dtype bfloat16 \
    --save_dir checkpoints/llama_90m_adamw \
    --optimizer adamw
