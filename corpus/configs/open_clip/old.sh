cd open_clip/src
python -m training.main --train-data train.csv --imagenet-val /data/imagenet/val --csv-img-key filepath --csv-caption-key title --model RN50 --epochs 30 --batch-size 128
