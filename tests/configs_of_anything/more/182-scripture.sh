torchrun --nproc_per_node=2 \
    trainer_pairs.py \
    --model allenai/scibert_scivocab_cased \
    --batch_size 130 \
    --valid_batch_size 110 \
    --document_max_length 384 --query_max_length 48 \
    --fp16 \
    --epochs 12
