python finetune.py --data_path ./sample/merge_sample.json --test_size 9
