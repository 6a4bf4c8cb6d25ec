{
export NCCL_P2P_DISABLE=1;
export CUDA_VISIBLE_DEVICES="0";
python trainer_md17.py  --disable_compile --root .data/md17 --min_lr 1e-6 --init_lr 5e-4 --weight_decay 1e-16 --max_epochs 900 --batch_size 72  --inference_batch_size 48 --warmup_steps 1000
}
