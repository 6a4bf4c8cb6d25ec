CUDA_VISIBLE_DEVICES=0 ./pruned_transducer_stateless7/train.py --exp-dir e --full-libri 0 --world-size 1
