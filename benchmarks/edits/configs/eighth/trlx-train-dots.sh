base="gpt2-medium"
accelerate launch --config_file accelerate.yaml PPO_training/PPO_training.py \
    --train.epochs 1256 \
    --train.batch_size 128 \
    --train.minibatch_size 2 \
    --train.seq_length 512 \
    --train.total_steps 1256 \
    --model.model_path "${base}" \
    --tokenizer.tokenizer_path "${base}" \
    --reward_batch_size 4 \
    --weight_file "w/linear_5.json" 
