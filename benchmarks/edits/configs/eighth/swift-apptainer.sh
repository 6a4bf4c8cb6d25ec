#!/bin/bash
set -e
LOCAL=/scratch/u
OUT=$LOCAL/out
CAP=32768
DS=zero3
CHANNEL=false
nvidia-smi --query-gpu=timestamp,index,memory.used --format=csv -l 5 > "$OUT/gpu.csv" &
MON=$!
trap 'kill "$MON" 2>/dev/null || true' EXIT
set +e
timeout --signal=TERM --kill-after=60 2400 apptainer exec --nv \
    --bind /scratch:/scratch \
    --env HF_HOME="$LOCAL/hf" --env HF_HUB_OFFLINE=1 \
    --env IMAGE_MAX_TOKEN_NUM=2048 --env NCCL_P2P_DISABLE=1 \
    --env PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True \
    "$LOCAL/train.sif" \
    /opt/venv/bin/torchrun --standalone --nnodes=1 --nproc_per_node=4 /opt/venv/bin/swift sft \
    --model "$LOCAL/Qwen3.5-9B" --model_type qwen3_5 --template qwen3_5 \
    --dataset "$OUT/test.jsonl" --split_dataset_ratio 0 \
    --enable_channel_loss "$CHANNEL" --tuner_type full --loss_scale last_round \
    --freeze_vit true --freeze_aligner true \
    --attn_impl sdpa --deepspeed "$DS" --torch_dtype bfloat16 \
    --per_device_train_batch_size 1 --gradient_accumulation_steps 16 \
    --learning_rate 3e-6 --lr_scheduler_type cosine --warmup_ratio 0.1 \
    --seed 42 --data_seed 42 --max_length "$CAP" --gradient_checkpointing true \
    --max_steps 2 --dataloader_num_workers 0 --dataset_num_proc 1 \
    --report_to none --output_dir "$OUT/train" > "$OUT/train.log" 2>&1
RC=$?
set -e
exit $RC
