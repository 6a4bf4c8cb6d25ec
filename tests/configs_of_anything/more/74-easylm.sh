python -m EasyLM.models.llama.llama_train \
    --mesh_dim='1,-1,1' \
    --dtype='bf16' \
    --total_steps=250000 \
    --load_llama_config='7b' \
    --optimizer.type='adamw' \
    --optimizer.adamw_optimizer.lr=3e-4 \
    --optimizer.accumulate_gradient_steps=4 \
    --train_dataset.json_dataset.seq_length=1536 \
    --train_dataset.json_dataset.batch_size=256
