#!/usr/bin/env bash
CUDA_VISIBLE_DEVICES=0,1,2,3 fairseq-train data-bin/wmt17 --arch transformer_wmt_en_de_big --share-all-embeddings --optimizer adam \
  --lr 0.0007 --clip-norm 0.0 --dropout 0.2 --criterion label_smoothed_cross_entropy --max-tokens 3584 --update-freq 8 --fp16 \
  --num-workers 4 --max-update 100000
