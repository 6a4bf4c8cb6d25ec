lr=0.001
torchrun --nproc_per_node=6 fit_video.py \
        --batch_size 5 \
        --num_epochs 30 \
        --learning_rate ${lr} \
        --model_width 1536 \
        --model_depth 20 \
        --compile_models True \

