export CUDA_VISIBLE_DEVICES=1
python main.py \
    --model_name_or_path roberta-large \
    --data_path ./data \
    --mode classify \
    --do_train True \
    --fp16 True \
    --epoch_num 6 \
    --batch_size 28 \
    --max_len 160 \
    --learning_rate 1e-5 \
    --clip_max_grad_norm 1 \
    --gradient_accumulation_steps 3 \
    "$@"
