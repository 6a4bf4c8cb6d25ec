	python fit_main.py --data_dir=$data_dir --val_every=4 --noamp --distributed --model swin \
--logdir $log_dir --max_epochs 20 --batch_size=2 \
--roi_x=96 --roi_y=96 --roi_z=64 --use_checkpoint --feature_size=36
