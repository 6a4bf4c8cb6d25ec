data_path=data/102f
seed=200
lr=0.001
batch=112
python3 pretrain_speech.py --data_path $data_path --save_root o --cfg_file cfg/x.yml --lr $lr --weight-decay 1e-3 --batch-size $batch --workers 5 --img_size 256
