mkdir -p output
python -m multiproc train.py -m Tacotron2 -o ./output/ --fp16-run -lr 1e-3 --epochs 1501 -bs 44 --weight-decay 1e-6 --grad-clip-thresh 1.0 --cudnn-enabled --log-file nvlog.json
