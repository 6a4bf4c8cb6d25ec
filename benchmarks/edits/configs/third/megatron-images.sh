torchrun --nproc_per_node 8 --nnodes 4 examples/multimodal/train.py --num-layers 80 --hidden-size 8192 --num-attention-heads 64 --group-query-attention --num-query-groups 8 \
  --tensor-model-parallel-size 8 --pipeline-model-parallel-size 1 --seq-length 1024 --decoder-seq-length 5248 --max-position-embeddings 32768 --micro-batch-size 1 --global-batch-size 128 \
  --bf16 --use-distributed-optimizer --recompute-granularity full --recompute-method block --recompute-num-layers 20 --dataloader-save ck --prompt-path p.json --lr 2e-6 --train-iters 20000
