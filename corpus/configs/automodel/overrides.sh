automodel qlora-8b.yaml --nproc-per-node 8 \
    --step_scheduler.local_batch_size 2 \
    --distributed.activation_checkpointing true
