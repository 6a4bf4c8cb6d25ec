names=(small medium large)
batches=(16 12 6)
lengths=(640 640 640)
for i in "${!names[@]}"; do
    name="${names[$i]}"
    batch="${batches[$i]}"
    length="${lengths[$i]}"
    python -m torch.distributed.run --nproc_per_node=2 pretrain.py --out-dir runs/$name --seq-len $length --batch-size $batch --lr 3e-4
done
