export CUDA_VISIBLE_DEVICES=2,3
nohup python -u train.py \
        --device=0,1 \
        --model_config=model/small/config.json \
        --tokenizer_path=model/small/vocab.txt \
        --epochs=40 \
        --log_step=100 \
        --min_length=12 \
        --stride=96 \
        --batch_size=40 \
        --gradient_accumulation=2 \
        --fp16 \
        --output_dir=model/small/ >> log/t.log 2>&1 &
