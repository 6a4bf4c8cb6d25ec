python train.py --load_model "" --wandb "" --proj_dir out/L24-D2048 --my_testing x060 --ctx_len 1536 --my_exit_tokens 1498226207 \
 --micro_bsz 10 --epoch_steps 40320 --n_layer 24 --n_embd 2048 --lr_init 4e-4 --lr_final 4e-5 --weight_decay 0.1 --precision bf16 --grad_cp 1 --devices 8
