if [[ $1 == 'train' ]]; then
    echo 'Run training...'
    python train.py --cuda --data ../data/enwik8 --dataset enwik8 --n_ctx 1536 --dropout 0.1 --optim adam --clip 0.25 \
        --batch_size 240 --mini_batch_size 12 --max_step 400000 --n_gpus 4 --eval_batch_size 3 --fp16
fi
