#!/usr/bin/env bash
set -euo pipefail

NGPU="${NGPU:-$(python -c 'import torch; print(torch.cuda.device_count())')}"
echo "on ${NGPU} cards"

tune run --nproc_per_node "${NGPU}" full_finetune_distributed \
    --config configs/qwen2_5_7B_full_fsdp.yaml batch_size=4 \
    "$@"

echo "done: /workspace/output/epoch_*"
