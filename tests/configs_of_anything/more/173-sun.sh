python3 train_sun.py --image_size 320 --num_channels 3 \
--num_timesteps 4 --batch_size 7 --num_epoch 80 --use_ema --ema_decay 0.999 \
--num_process_per_node 2 --save_content
