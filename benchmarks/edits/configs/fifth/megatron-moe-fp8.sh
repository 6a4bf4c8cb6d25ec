torchrun --nproc_per_node=8 --nnodes=2 pretrain_gpt.py \
  --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 4096 --max-position-embeddings 4096 \
  --num-experts 64 --moe-router-topk 6 --moe-ffn-hidden-size 1408 --moe-grouped-gemm --moe-token-dispatcher-type alltoall \
  --expert-model-parallel-size 8 --expert-tensor-parallel-size 1 --tensor-model-parallel-size 1 --pipeline-model-parallel-size 2 \
  --micro-batch-size 4 --global-batch-size 512 --train-iters 500 --lr 1e-4 --bf16 --fp8-format hybrid \
  --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --tokenizer-type NullTokenizer --vocab-size 102400 --mock-data
